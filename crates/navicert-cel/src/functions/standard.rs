//! The standard library: sizes, conversions, string tests and time accessors.

use super::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD, time};
use crate::error::Misuse;
use crate::fault::Cause;
use crate::instant::{self, DurationText, Timestamp};
use crate::number::{self, DoubleText, Number};
use crate::value::ValueRef;

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

fn same<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    args.first().copied().ok_or(NO_SUCH_OVERLOAD)
}

fn size<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let count = match args {
        [ValueRef::Str(text)] => crate::cost::characters(text),
        [ValueRef::Bytes(bytes)] => bytes.len() as u64,
        [ValueRef::List(list)] => list.len() as u64,
        [ValueRef::Map(map)] => map.len() as u64,
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    i64::try_from(count).map(ValueRef::Int).map_err(|_| Cause::IntOverflow)
}

fn type_of<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    args.first().map(|val| ValueRef::Type(val.type_name())).ok_or(NO_SUCH_OVERLOAD)
}

fn to_bool<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => {
            number::parse_bool(text).map(ValueRef::Bool).ok_or(Cause::Conversion("bool"))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn to_bytes<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Str(text)] => Ok(ValueRef::Bytes(text.as_bytes())),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn to_double<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let value = match args {
        [ValueRef::Int(value)] => Some(Number::Int(*value).as_double()),
        [ValueRef::Uint(value)] => Some(Number::Uint(*value).as_double()),
        [ValueRef::Str(text)] => number::parse_double(text),
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    value.map(ValueRef::Double).ok_or(Cause::Conversion("double"))
}

fn to_int<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Double(value)] => {
            number::int_from_double(*value).map(ValueRef::Int).ok_or(Cause::IntOverflow)
        }
        [ValueRef::Uint(value)] => i64::try_from(*value).map(ValueRef::Int).map_err(|_| Cause::IntOverflow),
        [ValueRef::Duration(nanoseconds)] => Ok(ValueRef::Int(*nanoseconds)),
        [ValueRef::Timestamp(at)] => Ok(ValueRef::Int(at.seconds())),
        [ValueRef::Str(text)] => number::parse_int(text).map(ValueRef::Int).ok_or(Cause::Conversion("int")),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn to_uint<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Double(value)] => {
            number::uint_from_double(*value).map(ValueRef::Uint).ok_or(Cause::UintOverflow)
        }
        [ValueRef::Int(value)] => u64::try_from(*value).map(ValueRef::Uint).map_err(|_| Cause::UintOverflow),
        [ValueRef::Str(text)] => {
            number::parse_uint(text).map(ValueRef::Uint).ok_or(Cause::Conversion("uint"))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn to_string<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Bool(value)] => Ok(ValueRef::Str(if value { "true" } else { "false" })),
        [ValueRef::Int(value)] => call.write(|out| write!(out, "{value}")),
        [ValueRef::Uint(value)] => call.write(|out| write!(out, "{value}")),
        [ValueRef::Double(value)] => call.write(|out| write!(out, "{}", DoubleText(value))),
        [ValueRef::Duration(value)] => call.write(|out| write!(out, "{}", DurationText(value))),
        [ValueRef::Timestamp(value)] => call.write(|out| write!(out, "{value}")),
        [ValueRef::Bytes(bytes)] => {
            std::str::from_utf8(bytes).map(ValueRef::Str).map_err(|_| Cause::Misuse(Misuse::NotText))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

/// Removed by Kubernetes 1.37.
pub(crate) const DURATION_OF_INT: &[Declaration] =
    &[("int64_to_duration", "duration(int): duration", nanoseconds_to_duration)];

fn nanoseconds_to_duration<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Int(nanoseconds)] => Ok(ValueRef::Duration(*nanoseconds)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn to_duration<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => instant::parse_duration(text)
            .map(ValueRef::Duration)
            .ok_or(Cause::Conversion("google.protobuf.Duration")),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn to_timestamp<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => Timestamp::parse(text)
            .map(ValueRef::Timestamp)
            .ok_or(Cause::Conversion("google.protobuf.Timestamp")),
        [ValueRef::Int(seconds)] => {
            Timestamp::from_seconds(*seconds).map(ValueRef::Timestamp).ok_or(Cause::TimestampOverflow)
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn contains<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text), ValueRef::Str(part)] => Ok(ValueRef::Bool(text.contains(part))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn ends_with<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text), ValueRef::Str(part)] => Ok(ValueRef::Bool(text.ends_with(part))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn starts_with<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text), ValueRef::Str(part)] => Ok(ValueRef::Bool(text.starts_with(part))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}
