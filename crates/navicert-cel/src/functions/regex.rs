//! Regular expressions with RE2 semantics.

use super::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::error::{InvalidArgument, Misuse};
use crate::fault::Cause;
use crate::library::kubernetes::regex::{Pattern, PatternError};
use crate::value::ValueRef;

/// The functions of Kubernetes; `matches` is in the standard library.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("string_find_string", "(string).find(string): string", find),
    ("string_find_all_string", "(string).findAll(string): list(string)", find_all),
    ("string_find_all_string_int", "(string).findAll(string, int): list(string)", find_all),
];

/// Begins the messages of Kubernetes' functions about a pattern.
const ILLEGAL: &str = "Illegal regex: ";

/// Compiles a pattern.
pub(crate) fn compile(pattern: &str) -> Result<Pattern, PatternError> {
    Pattern::new(pattern)
}

/// Whether the pattern is valid, without compiling it.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    Pattern::check(pattern).is_ok()
}

/// Compiles an argument; `prefix` begins the error message.
fn pattern<'a>(call: &Call<'a>, text: &str, prefix: &str) -> Result<Pattern, Cause<'a>> {
    if text.len() > call.arena.max_pattern_bytes() {
        return Err(Cause::Misuse(Misuse::PatternTooLong));
    }
    call.arena
        .pattern(text, compile)
        .map_err(|error| call.invalid(InvalidArgument::Pattern, format_args!("{prefix}{error}")))
}

pub(super) fn matches<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text), ValueRef::Str(expression)] => {
            Ok(ValueRef::Bool(pattern(call, expression, "")?.is_match(text)))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn find<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text), ValueRef::Str(expression)] => {
            Ok(ValueRef::Str(pattern(call, expression, ILLEGAL)?.find(text).unwrap_or("")))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn find_all<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let (text, expression, limit) = match *args {
        [ValueRef::Str(text), ValueRef::Str(expression)] => (text, expression, usize::MAX),
        [ValueRef::Str(text), ValueRef::Str(expression), ValueRef::Int(limit)] => {
            (text, expression, usize::try_from(limit).unwrap_or(usize::MAX))
        }
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    let compiled = pattern(call, expression, ILLEGAL)?;
    let mut list = call.arena.list();
    for found in compiled.find_all(text).take(limit) {
        list.push(ValueRef::Str(found)).ok_or(ARENA_FULL)?;
    }
    Ok(ValueRef::List(list.finish()))
}
