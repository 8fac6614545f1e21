//! Converts claims to CEL values, once per token, and only those that some expression can access.

use std::collections::HashSet;

use navicert_cel::{ClaimError, ClaimSet, Untrusted, ValueRef};
use navicert_go::json::{self, Kind, Raw};
use serde_json::{Map, Number, Value};

use crate::jwt::VerifiedClaims;
use crate::model::outcome::Refusal;
use crate::profile::{AuthnProfile, Hardening};

/// Maximum nesting. A claim nested deeper has no value, which only affects expressions that use it.
const MAX_CLAIM_DEPTH: usize = 128;

/// The claims of these names, or all; of duplicates the last one.
pub(crate) fn convert<'c>(
    claims: &'c VerifiedClaims<'_>,
    accessed: Option<&'c [String]>,
    profile: &AuthnProfile,
) -> Result<ClaimSet<'c>, Refusal> {
    let Some(accessed) = accessed else {
        let mut set = ClaimSet::with_capacity(claims.members().len());
        for (name, raw) in claims.members() {
            insert(&mut set, name, *raw, profile)?;
        }
        return Ok(set);
    };
    let mut set = ClaimSet::with_capacity(accessed.len());
    for name in accessed {
        if let Some(raw) = claims.claim(name) {
            insert(&mut set, name, raw, profile)?;
        }
    }
    Ok(set)
}

fn insert<'c>(
    set: &mut ClaimSet<'c>,
    name: &'c str,
    raw: Raw<'c>,
    profile: &AuthnProfile,
) -> Result<(), Refusal> {
    match raw.kind() {
        Kind::String => set.insert_text(name, raw.string().unwrap_or_default()),
        Kind::Null => set.insert_value(name, ValueRef::Null),
        Kind::Bool => set.insert_value(name, ValueRef::Bool(raw.is_true())),
        Kind::Number => match number(raw) {
            Some(value) => set.insert_value(name, ValueRef::Double(value)),
            None => set.insert(name, Err(out_of_range(raw))),
        },
        Kind::Array | Kind::Object => {
            let mut conversion = Conversion { is_repeated: false };
            set.insert(name, conversion.value(raw, 0));
            // H7: a claim that an expression uses must be unambiguous.
            if conversion.is_repeated && profile.has(Hardening::ExactClaimNames) {
                return Err(Refusal::Malformed("duplicate member in a claim"));
            }
        }
    }
    Ok(())
}

/// The error for a number outside of a double's range.
#[cold]
fn out_of_range(raw: Raw<'_>) -> ClaimError {
    ClaimError::OutOfRange(Untrusted::new(raw.text()))
}

struct Conversion {
    is_repeated: bool,
}

impl Conversion {
    fn value(&mut self, raw: Raw<'_>, depth: usize) -> Result<Value, ClaimError> {
        if depth > MAX_CLAIM_DEPTH {
            return Err(ClaimError::TooDeep);
        }
        Ok(match raw.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(raw.is_true()),
            // Every number is a double; one out of range makes its claim an error (S74, S75).
            Kind::Number => {
                number(raw).and_then(Number::from_f64).map(Value::Number).ok_or_else(|| out_of_range(raw))?
            }
            Kind::String => Value::String(raw.string().unwrap_or_default().into_owned()),
            Kind::Array => {
                let items: Result<_, _> = raw.elements().map(|item| self.value(item, depth + 1)).collect();
                Value::Array(items?)
            }
            Kind::Object => {
                let mut names = HashSet::new();
                let mut members = Map::new();
                for (name, value) in raw.members() {
                    self.is_repeated |= !names.insert(name.clone());
                    members.insert(name.into_owned(), self.value(value, depth + 1)?);
                }
                Value::Object(members)
            }
        })
    }
}

/// The double that a number is read as. Small integers are converted directly.
fn number(raw: Raw<'_>) -> Option<f64> {
    match json::plain_digits(raw.bytes()).map(u32::try_from) {
        Some(Ok(whole)) => Some(f64::from(whole)),
        _ => raw.number()?.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S74
    #[test]
    fn numbers_are_parsed_as_doubles() {
        for text in
            ["0", "1", "4294967295", "4294967296", "1794773224", "9007199254740993", "-1", "-0", "0.1", "1e9"]
        {
            let found = number(Raw::parse(text.as_bytes()).unwrap()).unwrap();
            assert_eq!(found.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert_eq!(number(Raw::parse(b"1e400").unwrap()), None);
    }
}
