//! Functions of `kubernetes.URL`.

use crate::error::InvalidArgument;
use crate::functions::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::library::kubernetes::url::Url;
use crate::opaque::Opaque;
use crate::value::{Map, Pairs, ValueRef};

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("string_to_url", "url(string): kubernetes.URL", url),
    ("url_get_scheme", "(kubernetes.URL).getScheme(): string", scheme),
    ("url_get_host", "(kubernetes.URL).getHost(): string", host),
    ("url_get_hostname", "(kubernetes.URL).getHostname(): string", hostname),
    ("url_get_port", "(kubernetes.URL).getPort(): string", port),
    ("url_get_escaped_path", "(kubernetes.URL).getEscapedPath(): string", escaped_path),
    ("url_get_query", "(kubernetes.URL).getQuery(): map(string, list(string))", query),
    ("is_url_string", "isURL(string): bool", is_url),
];

fn one<'a>(args: &[ValueRef<'a>]) -> Result<&'a Url, crate::fault::Cause<'a>> {
    match args {
        [ValueRef::Opaque(Opaque::Url(url))] => Ok(url),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn url<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => match Url::parse(text) {
            Ok(url) => call.opaque(Opaque::Url(Box::new(url))),
            Err(error) => Err(call.invalid(InvalidArgument::Url, error)),
        },
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn is_url<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => Ok(ValueRef::Bool(Url::parse(text).is_ok())),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn scheme<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Str(one(args)?.scheme()))
}

fn host<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    call.text(&one(args)?.host())
}

fn hostname<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    call.text(&one(args)?.hostname())
}

fn port<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    call.text(&one(args)?.port())
}

fn escaped_path<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    call.text(&one(args)?.escaped_path())
}

fn query<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let mut pairs = Vec::new();
    for (key, values) in one(args)?.query() {
        let mut list = call.arena.list();
        for value in values {
            list.push(call.text(&value)?).ok_or(ARENA_FULL)?;
        }
        pairs.push((call.text(&key)?, ValueRef::List(list.finish())));
    }
    Pairs::build(call.arena, &pairs).map(|pairs| ValueRef::Map(Map::Pairs(pairs))).ok_or(ARENA_FULL)
}
