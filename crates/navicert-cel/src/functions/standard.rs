//! The standard library: sizes, conversions, text tests and time accessors.

use super::{Call, Declaration, Given, MISFIT, time};
use crate::fault::Cause;
use crate::instant::{self, DurationText, Timestamp};
use crate::number::{self, DoubleText, Number};
use crate::value::Val;

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("size_bytes", "size(bytes): int", size),
    ("bytes_size", "(bytes).size(): int", size),
    ("size_list", "size(list(A)): int", size),
    ("list_size", "(list(A)).size(): int", size),
    ("size_map", "size(map(A, B)): int", size),
    ("map_size", "(map(A, B)).size(): int", size),
    ("size_string", "size(string): int", size),
    ("string_size", "(string).size(): int", size),
    ("type", "type(A): type(A)", type_of),
    ("bool_to_bool", "bool(bool): bool", same),
    ("string_to_bool", "bool(string): bool", to_bool),
    ("bytes_to_bytes", "bytes(bytes): bytes", same),
    ("string_to_bytes", "bytes(string): bytes", to_bytes),
    ("double_to_double", "double(double): double", same),
    ("int64_to_double", "double(int): double", to_double),
    ("string_to_double", "double(string): double", to_double),
    ("uint64_to_double", "double(uint): double", to_double),
    ("duration_to_duration", "duration(duration): duration", same),
    ("string_to_duration", "duration(string): duration", to_duration),
    ("to_dyn", "dyn(A): dyn", same),
    ("int64_to_int64", "int(int): int", same),
    ("double_to_int64", "int(double): int", to_int),
    ("duration_to_int64", "int(duration): int", to_int),
    ("string_to_int64", "int(string): int", to_int),
    ("timestamp_to_int64", "int(timestamp): int", to_int),
    ("uint64_to_int64", "int(uint): int", to_int),
    ("string_to_string", "string(string): string", same),
    ("bool_to_string", "string(bool): string", to_string),
    ("bytes_to_string", "string(bytes): string", to_string),
    ("double_to_string", "string(double): string", to_string),
    ("duration_to_string", "string(duration): string", to_string),
    ("int64_to_string", "string(int): string", to_string),
    ("timestamp_to_string", "string(timestamp): string", to_string),
    ("uint64_to_string", "string(uint): string", to_string),
    ("timestamp_to_timestamp", "timestamp(timestamp): timestamp", same),
    ("int64_to_timestamp", "timestamp(int): timestamp", to_timestamp),
    ("string_to_timestamp", "timestamp(string): timestamp", to_timestamp),
    ("uint64_to_uint64", "uint(uint): uint", same),
    ("double_to_uint64", "uint(double): uint", to_uint),
    ("int64_to_uint64", "uint(int): uint", to_uint),
    ("string_to_uint64", "uint(string): uint", to_uint),
    ("contains_string", "(string).contains(string): bool", contains),
    ("ends_with_string", "(string).endsWith(string): bool", ends_with),
    ("starts_with_string", "(string).startsWith(string): bool", starts_with),
    ("matches", "matches(string, string): bool", super::regex::matches),
    ("matches_string", "(string).matches(string): bool", super::regex::matches),
    ("timestamp_to_year", "(timestamp).getFullYear(): int", time::year),
    ("timestamp_to_year_with_tz", "(timestamp).getFullYear(string): int", time::year),
    ("timestamp_to_month", "(timestamp).getMonth(): int", time::month),
    ("timestamp_to_month_with_tz", "(timestamp).getMonth(string): int", time::month),
    ("timestamp_to_day_of_year", "(timestamp).getDayOfYear(): int", time::day_of_year),
    ("timestamp_to_day_of_year_with_tz", "(timestamp).getDayOfYear(string): int", time::day_of_year),
    ("timestamp_to_day_of_month", "(timestamp).getDayOfMonth(): int", time::day_of_month),
    ("timestamp_to_day_of_month_with_tz", "(timestamp).getDayOfMonth(string): int", time::day_of_month),
    ("timestamp_to_day_of_month_1_based", "(timestamp).getDate(): int", time::date),
    ("timestamp_to_day_of_month_1_based_with_tz", "(timestamp).getDate(string): int", time::date),
    ("timestamp_to_day_of_week", "(timestamp).getDayOfWeek(): int", time::day_of_week),
    ("timestamp_to_day_of_week_with_tz", "(timestamp).getDayOfWeek(string): int", time::day_of_week),
    ("timestamp_to_hours", "(timestamp).getHours(): int", time::hours),
    ("timestamp_to_hours_with_tz", "(timestamp).getHours(string): int", time::hours),
    ("duration_to_hours", "(duration).getHours(): int", time::hours),
    ("timestamp_to_minutes", "(timestamp).getMinutes(): int", time::minutes),
    ("timestamp_to_minutes_with_tz", "(timestamp).getMinutes(string): int", time::minutes),
    ("duration_to_minutes", "(duration).getMinutes(): int", time::minutes),
    ("timestamp_to_seconds", "(timestamp).getSeconds(): int", time::seconds),
    ("timestamp_to_seconds_tz", "(timestamp).getSeconds(string): int", time::seconds),
    ("duration_to_seconds", "(duration).getSeconds(): int", time::seconds),
    ("timestamp_to_milliseconds", "(timestamp).getMilliseconds(): int", time::milliseconds),
    ("timestamp_to_milliseconds_with_tz", "(timestamp).getMilliseconds(string): int", time::milliseconds),
    ("duration_to_milliseconds", "(duration).getMilliseconds(): int", time::milliseconds),
];

fn same<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    args.first().copied().ok_or(MISFIT)
}

fn size<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    let count = match args {
        [Val::Str(text)] => crate::cost::characters(text),
        [Val::Bytes(bytes)] => bytes.len() as u64,
        [Val::List(list)] => list.len() as u64,
        [Val::Map(map)] => map.len() as u64,
        _ => return Err(MISFIT),
    };
    i64::try_from(count).map(Val::Int).map_err(|_| Cause::IntOverflow)
}

fn type_of<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    args.first().map(|val| Val::Type(val.type_name())).ok_or(MISFIT)
}

fn not_convertible<'a>(call: &Call<'a>, args: &[Val<'a>], to: &str) -> Cause<'a> {
    let from = args.first().map_or("", Val::type_name);
    call.error(format_args!("type conversion error from '{from}' to '{to}'"))
}

fn to_bool<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Str(text)] => {
            number::parse_bool(text).map(Val::Bool).ok_or_else(|| not_convertible(call, args, "bool"))
        }
        _ => Err(MISFIT),
    }
}

fn to_bytes<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match *args {
        [Val::Str(text)] => Ok(Val::Bytes(text.as_bytes())),
        _ => Err(MISFIT),
    }
}

fn to_double<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    let value = match args {
        [Val::Int(value)] => Some(Number::Int(*value).as_double()),
        [Val::Uint(value)] => Some(Number::Uint(*value).as_double()),
        [Val::Str(text)] => number::parse_double(text),
        _ => return Err(MISFIT),
    };
    value.map(Val::Double).ok_or_else(|| not_convertible(call, args, "double"))
}

fn to_int<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Double(value)] => number::int_from_double(*value).map(Val::Int).ok_or(Cause::IntOverflow),
        [Val::Uint(value)] => i64::try_from(*value).map(Val::Int).map_err(|_| Cause::IntOverflow),
        [Val::Duration(nanoseconds)] => Ok(Val::Int(*nanoseconds)),
        [Val::Timestamp(at)] => Ok(Val::Int(at.seconds())),
        [Val::Str(text)] => {
            number::parse_int(text).map(Val::Int).ok_or_else(|| not_convertible(call, args, "int"))
        }
        _ => Err(MISFIT),
    }
}

fn to_uint<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Double(value)] => number::uint_from_double(*value).map(Val::Uint).ok_or(Cause::UintOverflow),
        [Val::Int(value)] => u64::try_from(*value).map(Val::Uint).map_err(|_| Cause::UintOverflow),
        [Val::Str(text)] => {
            number::parse_uint(text).map(Val::Uint).ok_or_else(|| not_convertible(call, args, "uint"))
        }
        _ => Err(MISFIT),
    }
}

fn to_string<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match *args {
        [Val::Bool(value)] => Ok(Val::Str(if value { "true" } else { "false" })),
        [Val::Int(value)] => call.write(|out| write!(out, "{value}")),
        [Val::Uint(value)] => call.write(|out| write!(out, "{value}")),
        [Val::Double(value)] => call.write(|out| write!(out, "{}", DoubleText(value))),
        [Val::Duration(value)] => call.write(|out| write!(out, "{}", DurationText(value))),
        [Val::Timestamp(value)] => call.write(|out| write!(out, "{value}")),
        [Val::Bytes(bytes)] => std::str::from_utf8(bytes)
            .map(Val::Str)
            .map_err(|_| Cause::Message("invalid UTF-8 in bytes, cannot convert to string")),
        _ => Err(MISFIT),
    }
}

fn to_duration<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Str(text)] => instant::parse_duration(text)
            .map(Val::Duration)
            .ok_or_else(|| not_convertible(call, args, "google.protobuf.Duration")),
        _ => Err(MISFIT),
    }
}

fn to_timestamp<'a>(call: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Str(text)] => Timestamp::parse(text)
            .map(Val::Timestamp)
            .ok_or_else(|| not_convertible(call, args, "google.protobuf.Timestamp")),
        [Val::Int(seconds)] => {
            Timestamp::from_seconds(*seconds).map(Val::Timestamp).ok_or(Cause::TimestampOverflow)
        }
        _ => Err(MISFIT),
    }
}

fn contains<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Str(text), Val::Str(part)] => Ok(Val::Bool(text.contains(part))),
        _ => Err(MISFIT),
    }
}

fn ends_with<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Str(text), Val::Str(part)] => Ok(Val::Bool(text.ends_with(part))),
        _ => Err(MISFIT),
    }
}

fn starts_with<'a>(_: &Call<'a>, args: &[Val<'a>]) -> Given<'a> {
    match args {
        [Val::Str(text), Val::Str(part)] => Ok(Val::Bool(text.starts_with(part))),
        _ => Err(MISFIT),
    }
}
