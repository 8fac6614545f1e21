//! Runtime cost of calls, equal to cel-go's cost tracker and the cost estimators of Kubernetes' functions.

use crate::language::LanguageFacts;
use crate::opaque::Opaque;
use crate::value::ValueRef;

/// How the cost of a call is computed from its arguments and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A constant.
    Fixed(u32),
    /// A tenth of the first argument's size.
    ScanFirst,
    /// A tenth of the second argument's size.
    ScanSecond,
    /// A fifth of the first argument's size: a read and a write.
    RewriteFirst,
    /// A fifth of the result's size.
    Joined,
    /// A tenth of the sum of both sizes.
    Concatenate,
    /// A tenth of the smaller size.
    Smaller,
    /// As [`Rule::Smaller`], but one unit for Kubernetes types.
    Equality,
    /// Text size times pattern size.
    Pattern,
    /// Text size times substring size.
    Contains,
    /// The size of the second argument.
    InList,
    /// The number of leaves in the first argument.
    Traverse,
    /// The product of both sizes, times this factor.
    Sets(u8),
    /// The creation of a list as long as the result.
    NewList,
    /// The creation of a list per level.
    Flatten,
    /// A pairwise comparison of the elements of the argument with this index.
    SelfCompare(u8),
    /// The bytes of an address range, plus the string of the other operand if it is a string.
    ContainsIp(bool),
    /// As [`Rule::ContainsIp`], plus a mask.
    ContainsCidr(bool),
    /// Matching a string against a named format.
    Validate,
    /// The length of a selector string.
    Selector,
}

impl Rule {
    /// The rule for a call with unresolved overload: only the function name is known.
    pub(crate) fn for_function(function: &str) -> Rule {
        match function {
            "check" => Rule::Fixed(350_000),
            "fieldSelector" | "labelSelector" => Rule::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => Rule::Traverse,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => Rule::ScanFirst,
            "replace" | "split" => Rule::RewriteFirst,
            "join" => Rule::Joined,
            "find" | "findAll" => Rule::Pattern,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                Rule::ScanFirst
            }
            "ip.isCanonical" => Rule::RewriteFirst,
            "containsIP" => Rule::ContainsIp(false),
            "containsCIDR" => Rule::ContainsCidr(false),
            "validate" => Rule::Validate,
            "_==_" => Rule::Equality,
            "_!=_" => Rule::Smaller,
            _ => Rule::Fixed(1),
        }
    }

    /// The rule for one overload of a function.
    pub(crate) fn for_overload(function: &str, overload: &str, facts: &LanguageFacts) -> Rule {
        match overload {
            "starts_with_string" | "ends_with_string" if !facts.affix_costs_by_affix => {
                return Rule::ScanFirst;
            }
            "matches" if !facts.global_matches_costs => return Rule::Fixed(1),
            "list_sets_contains_list" | "list_sets_intersects_list" => return Rule::Sets(1),
            "list_sets_equivalent_list" => return Rule::Sets(2),
            "list_slice" | "lists_range" | "list_reverse" => return Rule::NewList,
            "list_flatten" | "list_flatten_int" => return Rule::Flatten,
            "list_distinct" => return Rule::SelfCompare(0),
            "cidr_ip" => return Rule::Fixed(1),
            "cidr_contains_ip_string" => return Rule::ContainsIp(true),
            "cidr_contains_cidr_string" => return Rule::ContainsCidr(true),
            _ => {}
        }
        if overload.ends_with("_sort") && function == "sort" {
            return Rule::SelfCompare(0);
        }
        if function == "@sortByAssociatedKeys" {
            return Rule::SelfCompare(1);
        }
        let by_name = Rule::for_function(function);
        if by_name != Rule::Fixed(1) {
            return by_name;
        }
        match overload {
            "starts_with_string" | "ends_with_string" => Rule::ScanSecond,
            "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => Rule::ScanFirst,
            "in_list" => Rule::InList,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => Rule::Smaller,
            "add_string" | "add_bytes" => Rule::Concatenate,
            "matches" | "matches_string" => Rule::Pattern,
            "contains_string" => Rule::Contains,
            _ => Rule::Fixed(1),
        }
    }

    /// Whether the rule needs the argument with this index to be a list.
    pub(crate) fn needs_list(self, argument: usize) -> bool {
        match self {
            Rule::SelfCompare(index) => usize::from(index) == argument,
            Rule::Flatten => argument == 1,
            _ => false,
        }
    }

    /// The cost of an executed call.
    pub(crate) fn charge(self, args: &[ValueRef<'_>], result: Option<ValueRef<'_>>) -> u64 {
        let arg = |index: usize| args.get(index).copied().unwrap_or(ValueRef::Null);
        let first = || size(arg(0));
        let second = || size(arg(1));
        let result_size = || result.map_or(1, size);
        match self {
            Rule::Fixed(cost) => u64::from(cost),
            Rule::ScanFirst => tenth_of(arg(0)),
            Rule::ScanSecond => tenth_of(arg(1)),
            Rule::RewriteFirst => tenth(first().saturating_mul(2)),
            Rule::Joined => tenth(result_size().saturating_mul(2)),
            Rule::Concatenate => tenth(first().saturating_add(second())),
            Rule::Smaller => tenth_of_smaller(arg(0), arg(1)),
            Rule::Equality => match arg(0) {
                ValueRef::Opaque(_) => 1,
                left => tenth_of_smaller(left, arg(1)),
            },
            Rule::Pattern => pattern(first(), second()),
            Rule::Contains => tenth(first()).saturating_mul(tenth(second())),
            Rule::InList => second(),
            Rule::Traverse => traverse(arg(0)),
            Rule::Sets(times) => {
                let product = first().saturating_mul(second());
                product.saturating_mul(u64::from(times)).saturating_add(1)
            }
            Rule::NewList => result_size().saturating_add(11),
            Rule::Flatten => {
                let depth = match args.get(1) {
                    Some(ValueRef::Int(depth)) => u64::try_from(*depth).unwrap_or(1),
                    _ => 1,
                };
                first().saturating_mul(depth).saturating_add(11)
            }
            Rule::SelfCompare(index) => self_compare(arg(usize::from(index))),
            Rule::ContainsIp(text) => {
                let base = tenth(first().saturating_mul(2));
                base + if text { tenth(second()) } else { 0 }
            }
            Rule::ContainsCidr(text) => {
                let base = tenth(first().saturating_mul(2)) + tenth(first()) + 1;
                base + if text { tenth(second()) } else { 0 }
            }
            Rule::Validate => match arg(0) {
                ValueRef::Opaque(opaque) => match opaque.pattern_size() {
                    Some(pattern_size) => pattern(second(), pattern_size),
                    None => 1,
                },
                _ => 1,
            },
            Rule::Selector => {
                let length = second();
                let requirements = length.div_ceil(2);
                tenth(length).saturating_add(requirements.saturating_mul(50)).saturating_add(10)
            }
        }
    }
}

/// A tenth, rounded up. From 2^50 on it is computed in doubles, as cel-go does. Below, integer arithmetic gives the
/// same result: the error of 0.1 as a double is less than half a unit in the last place of any product.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the reference computes with doubles; the float cast saturates"
)]
pub(crate) fn tenth(size: u64) -> u64 {
    if size < 1 << 50 {
        return size.div_ceil(10);
    }
    let exact = size as f64 * 0.1;
    let whole = exact as u64;
    whole + u64::from((whole as f64) < exact)
}

/// A tenth of a value's size. Short strings are not counted.
fn tenth_of(val: ValueRef<'_>) -> u64 {
    match val {
        ValueRef::Str(text) if text.len() <= 10 => u64::from(!text.is_empty()),
        other => tenth(size(other)),
    }
}

/// The cost of comparing two strings.
#[inline]
pub(crate) fn compare_texts(left: &str, right: &str) -> u64 {
    if left.len().min(right.len()) <= 10 {
        return u64::from(!left.is_empty() && !right.is_empty());
    }
    tenth(characters(left).min(characters(right)))
}

/// A tenth of the smaller of two sizes.
fn tenth_of_smaller(left: ValueRef<'_>, right: ValueRef<'_>) -> u64 {
    match (left, right) {
        (ValueRef::Str(left), ValueRef::Str(right)) => compare_texts(left, right),
        (ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) | ValueRef::Uint(_), _)
        | (_, ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) | ValueRef::Uint(_)) => {
            u64::from(size(left).min(size(right)) > 0)
        }
        _ => tenth(size(left).min(size(right))),
    }
}

/// The cost of matching a string of size `text` against a pattern of size `pattern`.
pub(crate) fn pattern(text: u64, pattern: u64) -> u64 {
    tenth(text.saturating_add(1)).saturating_mul(pattern.div_ceil(4))
}

/// The size of a value for cost purposes; 1 for values without a size.
pub(crate) fn size(val: ValueRef<'_>) -> u64 {
    let count = match val {
        ValueRef::Str(text) => return characters(text),
        ValueRef::Bytes(bytes) => bytes.len(),
        ValueRef::List(list) => list.len(),
        ValueRef::Map(map) => map.len(),
        ValueRef::Claims(claims) => claims.len(),
        ValueRef::Object(object) => object.fields.len(),
        ValueRef::Optional(Some(content)) => return size(*content),
        ValueRef::Opaque(opaque) => return opaque_size(opaque),
        _ => 1,
    };
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn opaque_size(opaque: &Opaque) -> u64 {
    opaque.size().unwrap_or(1)
}

/// Number of code points in a string.
pub(crate) fn characters(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let count = if is_short_ascii(bytes) { bytes.len() } else { bytecount(bytes) };
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Whether a string has at most 64 bytes and all of them are ASCII. The last bytes may be tested twice.
fn is_short_ascii(bytes: &[u8]) -> bool {
    const SHORT: usize = 64;
    const HIGH: u64 = u64::MAX / 0xff * 0x80;
    let word = |eight: &[u8; 8]| u64::from_le_bytes(*eight);
    if let Some(last) = bytes.last_chunk::<8>() {
        let (eights, _) = bytes.as_chunks::<8>();
        return bytes.len() <= SHORT
            && eights.iter().fold(word(last), |all, eight| all | word(eight)) & HIGH == 0;
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            (u32::from_le_bytes(*first) | u32::from_le_bytes(*last)) & 0x8080_8080 == 0
        }
        _ => bytes.iter().all(u8::is_ascii),
    }
}

/// Counts the bytes that start a character.
fn bytecount(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// Number of leaves; a string counts by its length.
fn traverse(val: ValueRef<'_>) -> u64 {
    let bytes = |len: usize| u64::try_from(len / 10).unwrap_or(u64::MAX);
    match val {
        ValueRef::Str(text) => bytes(text.len()),
        ValueRef::Bytes(data) => bytes(data.len()),
        ValueRef::List(list) => list.iter().map(traverse).fold(0, u64::saturating_add),
        ValueRef::Map(map) => map
            .iter()
            .map(|(key, value)| traverse(key).saturating_add(traverse(value)))
            .fold(0, u64::saturating_add),
        _ => 1,
    }
}

/// Quadratic in the length of the list, with a higher factor for strings.
fn self_compare(val: ValueRef<'_>) -> u64 {
    let ValueRef::List(list) = val else { return 1 };
    let length = u64::try_from(list.len()).unwrap_or(u64::MAX);
    let square = length.saturating_mul(length);
    let texts = matches!(list.get(0), Some(ValueRef::Str(_) | ValueRef::Bytes(_)));
    let compared = if texts { scale(square, 2.0 + 0.1) } else { square.saturating_mul(2) };
    compared.saturating_add(11)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the reference multiplies doubles and cuts; the float cast saturates"
)]
fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "as the reference does it, and saturating")]
    fn integer_and_double_tenths_agree() {
        let by_doubles = |size: u64| (size as f64 * 0.1).ceil() as u64;
        let edges = (1..64).flat_map(|bit| (0..3).map(move |near| (1_u64 << bit) - 1 + near));
        let near = |size: u64| (0..3).map(move |near| size - 1 + near);
        let tens = (1..64).flat_map(|bit| [(1_u64 << bit) / 10, (3 << (bit - 1)) / 10, (1 << bit) / 7]);
        let tens = tens.filter(|ten| *ten > 0 && *ten < 1 << 59).flat_map(|ten| near(ten * 10));
        for size in
            (0..1 << 18).chain(edges).chain(tens).chain([u64::from(u32::MAX) * 7, u64::MAX - 1, u64::MAX])
        {
            assert_eq!(tenth(size), by_doubles(size), "{size}");
        }
    }

    // All lengths around a word size, with a multi-byte character at every position.
    #[test]
    fn counts_characters_of_any_length_and_width() {
        for length in 0..80 {
            let plain = "a".repeat(length);
            assert_eq!(characters(&plain), length as u64);
            for at in 0..=length {
                for symbol in ["\u{7f}", "é", "€", "\u{1f600}"] {
                    let text = format!("{}{symbol}{}", "a".repeat(at), "a".repeat(length - at));
                    assert_eq!(characters(&text), text.chars().count() as u64, "{text}");
                }
            }
        }
    }
}
