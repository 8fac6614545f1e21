//! Error messages of Go's JSON decoder for registered claims of a wrong type. They depend on the version of Go.

use navicert_go::json::{Kind, Raw, number_length};
use navicert_go::quote::quoted;

use super::masked::Masked;
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::registered_claim::go_name_matches;
use crate::profile::JsonErrors;

/// The error for the first registered claim of a wrong type. Claims with a custom decoder fail at once; of the others the
/// first one is reported at the end.
pub(super) fn type_error(claims: &UnverifiedClaims<'_>, errors: JsonErrors) -> Option<Masked> {
    let mut first = None;
    for (name, value) in claims.members() {
        let field = |found: Kind, field: &str, wanted: &str| {
            Masked::text_only(format!(
                "json: cannot unmarshal {} into Go struct field {field} of type {wanted}",
                found.name()
            ))
        };
        let is = |known: &str| go_name_matches(name, known);
        if is("aud") {
            if let Some(misfit) = audience_misfit(*value) {
                return Some(match errors {
                    JsonErrors::Go126 => field(misfit.found, "idToken.aud", misfit.wanted),
                    JsonErrors::Go127 => misfit.in_go_1_27(),
                });
            }
        } else if let Some(known) = ["exp", "iat", "nbf"].into_iter().find(|known| is(known)) {
            if let Some(message) = time_error(*value, known, errors) {
                return Some(message);
            }
        } else if value.is_null() {
            // Null leaves a field unchanged.
        } else if let Some(known) = ["iss", "sub", "nonce", "at_hash"].into_iter().find(|known| is(known)) {
            if value.kind() != Kind::String {
                first.get_or_insert_with(|| field(value.kind(), &format!("idToken.{known}"), "string"));
            }
        } else if is("_claim_names") {
            let wrong = match value.kind() {
                Kind::Object => value
                    .members()
                    .find(|(_, source)| !matches!(source.kind(), Kind::String | Kind::Null))
                    .map(|(_, source)| (source.kind(), "string")),
                other => Some((other, "map[string]string")),
            };
            if let Some((found, wanted)) = wrong {
                first.get_or_insert_with(|| field(found, "idToken._claim_names", wanted));
            }
        } else if is("_claim_sources")
            && let Some((found, field_path, wanted)) = source_misfit(*value)
        {
            first.get_or_insert_with(|| field(found, &field_path, wanted));
        }
    }
    first
}

/// A value of the wrong type in `aud`.
struct AudienceMisfit {
    found: Kind,
    wanted: &'static str,
    /// Position in the list.
    index: Option<usize>,
}

impl AudienceMisfit {
    /// Go 1.27 does not name the field, which has a decoder of its own, but the position.
    fn in_go_1_27(&self) -> Masked {
        match self.index {
            None => Masked::text_only(self.found.type_mismatch(self.wanted)),
            Some(index) => Masked::text_only(format!(
                "json: cannot unmarshal {} into .{index} of type {}",
                self.found.name(),
                self.wanted
            )),
        }
    }
}

fn audience_misfit(value: Raw<'_>) -> Option<AudienceMisfit> {
    match value.kind() {
        Kind::Null | Kind::String => None,
        Kind::Array => {
            let mut elements = value.elements().map(Raw::kind).enumerate();
            let (index, found) = elements.find(|(_, kind)| !matches!(kind, Kind::String | Kind::Null))?;
            Some(AudienceMisfit { found, wanted: "string", index: Some(index) })
        }
        found => Some(AudienceMisfit { found, wanted: "[]string", index: None }),
    }
}

fn source_misfit(value: Raw<'_>) -> Option<(Kind, String, &'static str)> {
    let field_path = "idToken._claim_sources";
    if value.kind() != Kind::Object {
        return Some((value.kind(), field_path.to_owned(), "map[string]oidc.claimSource"));
    }
    for (_, source) in value.members() {
        match source.kind() {
            Kind::Null => {}
            Kind::Object => {
                for (name, text) in source.members() {
                    let known =
                        ["endpoint", "access_token"].into_iter().find(|known| go_name_matches(&name, known));
                    if let Some(known) = known
                        && !matches!(text.kind(), Kind::Null | Kind::String)
                    {
                        let field_path = format!("claimSource._claim_sources.{known}");
                        return Some((text.kind(), field_path, "string"));
                    }
                }
            }
            other => return Some((other, field_path.to_owned(), "oidc.claimSource")),
        }
    }
    None
}

fn time_error(value: Raw<'_>, name: &str, errors: JsonErrors) -> Option<Masked> {
    let number = match value.kind() {
        Kind::Null if name == "nbf" => return None,
        Kind::Null => {
            return Some(Masked::text_only("strconv.ParseFloat: parsing \"\": invalid syntax"));
        }
        Kind::Number => value.number()?.to_owned(),
        Kind::String => {
            let text = value.string()?;
            if number_length(text.as_bytes()) != text.len() || text.is_empty() {
                let literal = value.text();
                return Some(match errors {
                    JsonErrors::Go126 => {
                        Masked::text_only("json: invalid number literal, trying to unmarshal ")
                            .value(quoted(&literal))
                            .then(" into Number")
                    }
                    JsonErrors::Go127 => Masked::text_only("json: cannot unmarshal string ")
                        .value(&*literal)
                        .then(" into Go value of type json.Number: invalid syntax"),
                });
            }
            text.into_owned()
        }
        other => {
            return Some(Masked::text_only(match errors {
                JsonErrors::Go126 => format!(
                    "json: cannot unmarshal {} into Go struct field idToken.{name} of type json.Number",
                    other.name()
                ),
                JsonErrors::Go127 => other.type_mismatch("json.Number"),
            }));
        }
    };
    let fits = number.parse::<i64>().is_ok() || number.parse::<f64>().is_ok_and(f64::is_finite);
    (!fits).then(|| {
        let message = Masked::text_only("strconv.ParseFloat: parsing ");
        message.value(quoted(&number)).then(": value out of range")
    })
}
