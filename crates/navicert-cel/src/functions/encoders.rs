//! The encoders extension: base64.

use super::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::error::InvalidArgument;
use crate::library::encode;
use crate::value::ValueRef;

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("base64_decode_string", "base64.decode(string): bytes", decode),
    ("base64_encode_bytes", "base64.encode(bytes): string", encode_bytes),
];

fn decode<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::Str(text)] = args else { return Err(NO_SUCH_OVERLOAD) };
    if encode::decoded_len_limit(text.len()) > call.arena.remaining() {
        return Err(ARENA_FULL);
    }
    let mut bytes = Vec::new();
    encode::read_base64(&mut bytes, text).map_err(|error| call.invalid(InvalidArgument::Base64, error))?;
    call.arena.slice(&bytes).map(ValueRef::Bytes).ok_or(ARENA_FULL)
}

fn encode_bytes<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Bytes(bytes)] => call.write(|mut out| encode::write_base64(&mut out, bytes)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}
