//! Kinds of values that settings of servers have: numbers and durations with bounds.

use std::time::Duration;

use navicert_types::decode::{Decode, Decoder, Fields};
use navicert_types::tree::Node;

/// A number above 0.
#[derive(Default)]
struct PositiveNumber(Option<u32>);

impl Decode for PositiveNumber {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let number = u32::decode(node, decoder)?;
        if number == 0 {
            decoder.report_invalid_value(node, "expected a number above 0");
        }
        Some(PositiveNumber(Some(number)))
    }
}

/// A number above 0, if the field is set.
pub(crate) fn number(fields: &mut Fields<'_>, name: &'static str) -> Option<u32> {
    fields.optional::<PositiveNumber>(name).and_then(|number| number.0)
}

/// A duration such as `1m30s`, possibly 0.
#[derive(Default)]
struct NonNegativeDuration(Duration);

impl Decode for NonNegativeDuration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let read = navicert_types::time::Duration::decode(node, decoder)?;
        let time = read.to_std();
        if time.is_none() {
            decoder.report_invalid_value(node, "expected a duration that is not negative");
        }
        time.map(NonNegativeDuration)
    }
}

/// A duration, if the field is set.
pub(crate) fn duration(fields: &mut Fields<'_>, name: &'static str) -> Option<Duration> {
    fields.optional::<NonNegativeDuration>(name).map(|time| time.0)
}

/// A duration above 0.
#[derive(Default)]
struct PositiveDuration(Duration);

impl Decode for PositiveDuration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let time = NonNegativeDuration::decode(node, decoder)?;
        if time.0.is_zero() {
            decoder.report_invalid_value(node, "expected a duration above 0");
            return None;
        }
        Some(PositiveDuration(time.0))
    }
}

/// A duration above 0, if the field is set.
pub(crate) fn positive_duration(fields: &mut Fields<'_>, name: &'static str) -> Option<Duration> {
    fields.optional::<PositiveDuration>(name).map(|time| time.0)
}
