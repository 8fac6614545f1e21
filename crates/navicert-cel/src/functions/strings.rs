//! The strings extension.

use super::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::check::types::Type;
use crate::error::InvalidArgument;
use crate::fault::{Cause, Kinds};
use crate::library::strings_format::{self, ArgumentView, Dialect, FormatArgument, FormatError, Piece, Verb};
use crate::library::strings_text::PositionError;
use crate::library::{strings_quote, strings_text};
use crate::value::{List, Map, ValueRef};

/// Version 2, as in Kubernetes.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("string_char_at_int", "(string).charAt(int): string", char_at),
    ("string_index_of_string", "(string).indexOf(string): int", index_of),
    ("string_index_of_string_int", "(string).indexOf(string, int): int", index_of),
    ("string_last_index_of_string", "(string).lastIndexOf(string): int", last_index_of),
    ("string_last_index_of_string_int", "(string).lastIndexOf(string, int): int", last_index_of),
    ("string_lower_ascii", "(string).lowerAscii(): string", lower),
    ("string_replace_string_string", "(string).replace(string, string): string", replace),
    ("string_replace_string_string_int", "(string).replace(string, string, int): string", replace),
    ("string_split_string", "(string).split(string): list(string)", split),
    ("string_split_string_int", "(string).split(string, int): list(string)", split),
    ("string_substring_int", "(string).substring(int): string", substring),
    ("string_substring_int_int", "(string).substring(int, int): string", substring),
    ("string_trim", "(string).trim(): string", trim),
    ("string_upper_ascii", "(string).upperAscii(): string", upper),
    ("string_format", "(string).format(list(dyn)): string", format),
    ("strings_quote", "strings.quote(string): string", quote),
    ("list_join", "(list(string)).join(): string", join),
    ("list_join_string", "(list(string)).join(string): string", join),
];

/// Additions of later versions.
pub(crate) const STANDARD_ONLY: &[Declaration] = &[("string_reverse", "(string).reverse(): string", reverse)];

fn char_at<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text), ValueRef::Int(at)] => strings_text::char_at(text, at)
            .map(ValueRef::Str)
            .map_err(|error| call.invalid(InvalidArgument::Position, error)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn index_of<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text), ValueRef::Str(part)] => Ok(ValueRef::Int(strings_text::index_of(text, part))),
        [ValueRef::Str(_), ValueRef::Str(""), ValueRef::Int(from)] if !call.facts.empty_index_is_clamped => {
            Ok(ValueRef::Int(from))
        }
        [ValueRef::Str(text), ValueRef::Str(part), ValueRef::Int(from)] => {
            in_range(call, text, from)?;
            strings_text::index_of_from(text, part, from)
                .map(ValueRef::Int)
                .map_err(|error| call.invalid(InvalidArgument::Position, error))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn last_index_of<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text), ValueRef::Str(part)] => {
            Ok(ValueRef::Int(strings_text::last_index_of(text, part)))
        }
        [ValueRef::Str(_), ValueRef::Str(""), ValueRef::Int(from)] if !call.facts.empty_index_is_clamped => {
            Ok(ValueRef::Int(from))
        }
        [ValueRef::Str(text), ValueRef::Str(part), ValueRef::Int(from)] => {
            in_range(call, text, from)?;
            strings_text::last_index_of_from(text, part, from)
                .map(ValueRef::Int)
                .map_err(|error| call.invalid(InvalidArgument::Position, error))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

/// The conformance suite rejects an offset beyond the end; cel-go returns -1.
fn in_range<'a>(call: &Call<'a>, text: &str, from: i64) -> Result<(), Cause<'a>> {
    let beyond = u64::try_from(from).is_ok_and(|from| from > crate::cost::characters(text));
    if call.standard && beyond {
        return Err(call.invalid(InvalidArgument::Position, PositionError::OutOfRange(from)));
    }
    Ok(())
}

fn lower<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text)] if !text.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Ok(ValueRef::Str(text))
        }
        [ValueRef::Str(text)] => call.write(|mut out| strings_text::write_lower_ascii(&mut out, text)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn upper<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text)] if !text.bytes().any(|byte| byte.is_ascii_lowercase()) => {
            Ok(ValueRef::Str(text))
        }
        [ValueRef::Str(text)] => call.write(|mut out| strings_text::write_upper_ascii(&mut out, text)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn reverse<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text)] => call.write(|mut out| strings_text::write_reversed(&mut out, text)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn replace<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let (text, old, new, limit) = match *args {
        [ValueRef::Str(text), ValueRef::Str(old), ValueRef::Str(new)] => (text, old, new, -1),
        [ValueRef::Str(text), ValueRef::Str(old), ValueRef::Str(new), ValueRef::Int(limit)] => {
            (text, old, new, limit)
        }
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    if strings_text::replaced_len(text, old, new, limit) > call.arena.remaining() {
        return Err(ARENA_FULL);
    }
    call.write(|mut out| strings_text::write_replaced(&mut out, text, old, new, limit))
}

fn split<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text), ValueRef::Str(separator)] => {
            call.list(strings_text::split(text, separator, -1).map(ValueRef::Str))
        }
        [ValueRef::Str(text), ValueRef::Str(separator), ValueRef::Int(limit)] => {
            call.list(strings_text::split(text, separator, limit).map(ValueRef::Str))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn substring<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let part = match *args {
        [ValueRef::Str(text), ValueRef::Int(start)] => strings_text::substring_from(text, start),
        [ValueRef::Str(text), ValueRef::Int(start), ValueRef::Int(end)] => {
            strings_text::substring(text, start, end)
        }
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    part.map(ValueRef::Str).map_err(|error| call.invalid(InvalidArgument::Position, error))
}

fn trim<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text)] => Ok(ValueRef::Str(strings_text::trim(text))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn quote<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text)] => call.write(|mut out| strings_quote::write_quoted(&mut out, text)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn join<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let (list, separator) = match *args {
        [ValueRef::List(list)] => (list, ""),
        [ValueRef::List(list), ValueRef::Str(separator)] => (list, separator),
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    let mut length = 0_usize;
    for item in list.iter() {
        let ValueRef::Str(text) = item else {
            return Err(Cause::NoSuchVariant("join", Kinds::from_values(args)));
        };
        length = length.saturating_add(text.len()).saturating_add(separator.len());
    }
    if length.saturating_sub(separator.len()) > call.arena.remaining() {
        return Err(ARENA_FULL);
    }
    call.write(|out| {
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                out.write_str(separator)?;
            }
            if let ValueRef::Str(text) = item {
                out.write_str(text)?;
            }
        }
        Ok(())
    })
}

fn format<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::Str(template), ValueRef::List(list)] = *args else { return Err(NO_SUCH_OVERLOAD) };
    let arguments: Vec<ValueRef<'a>> = list.iter().collect();
    let dialect = if call.standard { Dialect::Standard } else { Dialect::Kubernetes };
    let mut failed = None;
    let room = call.arena.remaining();
    let written = call.arena.write(|out| {
        strings_format::format(out, template, &arguments, dialect, room).map_err(|error| {
            failed = Some(error);
            std::fmt::Error
        })
    });
    match (written, failed) {
        (Some(text), None) => Ok(ValueRef::Str(text)),
        (_, None | Some(FormatError::TooLarge)) => Err(ARENA_FULL),
        (_, Some(error)) => Err(call.invalid(InvalidArgument::Format, error)),
    }
}

impl FormatArgument for ValueRef<'_> {
    fn view(&self) -> ArgumentView<'_> {
        match *self {
            ValueRef::Null => ArgumentView::Null,
            ValueRef::Bool(value) => ArgumentView::Bool(value),
            ValueRef::Int(value) => ArgumentView::Int(value),
            ValueRef::Uint(value) => ArgumentView::Uint(value),
            ValueRef::Double(value) => ArgumentView::Double(value),
            ValueRef::Str(text) => ArgumentView::Text(text),
            ValueRef::Bytes(bytes) => ArgumentView::Bytes(bytes),
            ValueRef::Type(name) => ArgumentView::Type(name),
            ValueRef::Duration(value) => ArgumentView::Duration(value),
            ValueRef::Timestamp(value) => ArgumentView::Timestamp(value),
            ValueRef::List(_) => ArgumentView::List,
            ValueRef::Map(_) => ArgumentView::Map,
            _ => ArgumentView::Other,
        }
    }

    fn type_name(&self) -> String {
        ValueRef::type_name(self).to_owned()
    }

    fn elements(&self, visit: &mut dyn FnMut(Self) -> Result<(), FormatError>) -> Result<(), FormatError> {
        let ValueRef::List(list) = *self else { return Ok(()) };
        List::iter(list).try_for_each(visit)
    }

    fn entries(
        &self,
        visit: &mut dyn FnMut(Self, Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let ValueRef::Map(map) = *self else { return Ok(()) };
        Map::iter(map).try_for_each(|(key, value)| visit(key, value))
    }
}

/// An error in a literal format string.
pub(crate) enum FormatProblem<T> {
    /// An error in a clause or its argument.
    Clause(T),
    /// A syntax error in the format string.
    Syntax(String),
}

/// Calls `visit` for every clause of a format string.
pub(crate) fn clauses<T>(
    template: &str,
    mut visit: impl FnMut(Verb) -> Result<(), T>,
) -> Result<(), FormatProblem<T>> {
    for piece in strings_format::pieces(template, usize::MAX, Dialect::Kubernetes) {
        match piece {
            Ok(Piece::Text(_)) => {}
            Ok(Piece::Clause(clause)) => visit(clause.verb).map_err(FormatProblem::Clause)?,
            Err(error) => return Err(FormatProblem::Syntax(error.to_string())),
        }
    }
    Ok(())
}

/// Whether a clause accepts arguments of a type; the error names the accepted types.
pub(crate) fn clause_accepts(verb: Verb, node: Type) -> Result<(), &'static str> {
    let number = matches!(node, Type::Int | Type::Uint);
    let open = matches!(node, Type::Dyn);
    let fits = open
        || match verb {
            Verb::Text => matches!(
                node,
                Type::String
                    | Type::Bool
                    | Type::Bytes
                    | Type::Int
                    | Type::Uint
                    | Type::Double
                    | Type::Map(..)
                    | Type::List(_)
                    | Type::Type(_)
                    | Type::Duration
                    | Type::Timestamp
                    | Type::Null
            ),
            Verb::Decimal | Verb::Octal => number,
            Verb::Fixed | Verb::Scientific => matches!(node, Type::Double | Type::String),
            Verb::LowerHex | Verb::UpperHex => number || matches!(node, Type::String | Type::Bytes),
            Verb::Binary => number || node == Type::Bool,
        };
    if fits { Ok(()) } else { Err(verb.domain(Dialect::Kubernetes)) }
}
