//! base64.

use super::{Call, Declaration, FULL, Given, MISFIT};
use crate::library::encode;
use crate::value::ValueRef;

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("base64_decode_string", "base64.decode(string): bytes", decode),
    ("base64_encode_bytes", "base64.encode(bytes): string", encode_bytes),
];

fn decode<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> Given<'a> {
    let [ValueRef::Str(text)] = args else { return Err(MISFIT) };
    if encode::decoded_len_limit(text.len()) > call.arena.room() {
        return Err(FULL);
    }
    let mut bytes = Vec::new();
    encode::read_base64(&mut bytes, text).map_err(|error| call.error(error))?;
    call.arena.slice(&bytes).map(ValueRef::Bytes).ok_or(FULL)
}

fn encode_bytes<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> Given<'a> {
    match *args {
        [ValueRef::Bytes(bytes)] => call.write(|mut out| encode::write_base64(&mut out, bytes)),
        _ => Err(MISFIT),
    }
}
