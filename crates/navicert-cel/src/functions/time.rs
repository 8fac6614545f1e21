//! Accessors of timestamps and durations.

use super::{Call, FunctionResult, NO_SUCH_OVERLOAD};
use crate::error::InvalidArgument;
use crate::instant::{Fields, Zone, duration};
use crate::value::ValueRef;

/// A calendar field in the given time zone, or in UTC.
fn field<'a>(call: &Call<'a>, args: &[ValueRef<'a>], pick: fn(Fields) -> i64) -> FunctionResult<'a> {
    match args {
        [ValueRef::Timestamp(at)] => Ok(ValueRef::Int(pick(at.fields(&Zone::Utc)))),
        [ValueRef::Timestamp(at), ValueRef::Str(zone)] => {
            match Zone::parse(zone, call.facts.zone_minutes_are_bounded) {
                Ok(zone) => Ok(ValueRef::Int(pick(at.fields(&zone)))),
                Err(error) => Err(call.invalid(InvalidArgument::TimeZone, error)),
            }
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

pub(super) fn year<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    field(call, args, |fields| fields.year)
}

pub(super) fn month<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    field(call, args, |fields| fields.month)
}

pub(super) fn day_of_year<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    field(call, args, |fields| fields.day_of_year)
}

pub(super) fn day_of_month<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    field(call, args, Fields::day_of_month)
}

pub(super) fn date<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    field(call, args, |fields| fields.day)
}

pub(super) fn day_of_week<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    field(call, args, |fields| fields.day_of_week)
}

pub(super) fn hours<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Duration(length)] => Ok(ValueRef::Int(duration::hours(*length))),
        _ => field(call, args, |fields| fields.hours),
    }
}

pub(super) fn minutes<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Duration(length)] => Ok(ValueRef::Int(duration::minutes(*length))),
        _ => field(call, args, |fields| fields.minutes),
    }
}

pub(super) fn seconds<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Duration(length)] => Ok(ValueRef::Int(duration::seconds(*length))),
        _ => field(call, args, |fields| fields.seconds),
    }
}

pub(super) fn milliseconds<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Duration(length)] => Ok(ValueRef::Int(duration::milliseconds(*length))),
        _ => field(call, args, |fields| fields.milliseconds),
    }
}
