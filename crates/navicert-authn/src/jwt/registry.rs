//! The claims that a verifier reads, by the names that Go takes for theirs.

/// The claims that a verifier reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registry {
    Issuer,
    Subject,
    Audience,
    Expiry,
    IssuedAt,
    NotBefore,
    Nonce,
    AccessTokenHash,
    ClaimNames,
    ClaimSources,
}

impl Registry {
    const ALL: [Registry; 10] = [
        Registry::Issuer,
        Registry::Subject,
        Registry::Audience,
        Registry::Expiry,
        Registry::IssuedAt,
        Registry::NotBefore,
        Registry::Nonce,
        Registry::AccessTokenHash,
        Registry::ClaimNames,
        Registry::ClaimSources,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Registry::Issuer => "iss",
            Registry::Subject => "sub",
            Registry::Audience => "aud",
            Registry::Expiry => "exp",
            Registry::IssuedAt => "iat",
            Registry::NotBefore => "nbf",
            Registry::Nonce => "nonce",
            Registry::AccessTokenHash => "at_hash",
            Registry::ClaimNames => "_claim_names",
            Registry::ClaimSources => "_claim_sources",
        }
    }

    /// The claim of this exact name.
    fn exact(name: &[u8]) -> Option<Registry> {
        Some(match name {
            b"iss" => Registry::Issuer,
            b"sub" => Registry::Subject,
            b"aud" => Registry::Audience,
            b"exp" => Registry::Expiry,
            b"iat" => Registry::IssuedAt,
            b"nbf" => Registry::NotBefore,
            b"nonce" => Registry::Nonce,
            b"at_hash" => Registry::AccessTokenHash,
            b"_claim_names" => Registry::ClaimNames,
            b"_claim_sources" => Registry::ClaimSources,
            _ => return None,
        })
    }

    /// The claim that Go takes this name for.
    pub(super) fn find(name: &str) -> Option<Registry> {
        // Most names are none, which their first letter and their length tell: `ſ` begins with 0xc5.
        let first = name.as_bytes().first()? | 0x20;
        if !matches!(first, b'i' | b's' | b'a' | b'e' | b'n' | 0x7f | 0xe5) {
            return None;
        }
        if !matches!((name.len(), first), (3, _) | (5, b'n') | (7, b'a') | (12 | 14, 0x7f)) && name.is_ascii()
        {
            return None;
        }
        let exact = Registry::exact(name.as_bytes());
        // Names in small letters are what they are.
        if exact.is_some() || name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'0'..=b'9')) {
            return exact;
        }
        Registry::ALL.into_iter().find(|known| is_named(name, known.name()))
    }
}

/// Whether Go takes this name for the known one: in any case, with two letters that fold to ASCII (S130).
pub(crate) fn is_named(name: &str, known: &str) -> bool {
    let fold = |symbol: char| match symbol {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    // What folds to ASCII and is not ASCII is longer.
    (name.len() == known.len() && name.eq_ignore_ascii_case(known))
        || (name.len() > known.len()
            && !name.is_ascii()
            && name.chars().map(fold).eq(known.chars().map(fold)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S130: the short way to no, or to the one of that name, is the long way round.
    #[test]
    fn a_claim_is_found_by_every_name_that_go_takes_for_its_own() {
        let long_way = |name: &str| Registry::ALL.into_iter().find(|known| is_named(name, known.name()));
        let mut found = 0;
        let mut check = |name: &str| {
            assert_eq!(Registry::find(name), long_way(name), "{name:?}");
            found += usize::from(long_way(name).is_some());
        };
        for known in Registry::ALL.map(Registry::name) {
            let swaps = ['S', 's', '\u{17f}', '\u{212a}', 'k', 'I', 'e', 'é', '_', '\u{7f}', ' ', '1', '\0'];
            check(known);
            check(&known.to_ascii_uppercase());
            for at in 0..known.len() {
                let (before, after) = known.split_at(at);
                for swap in swaps {
                    check(&format!("{before}{swap}{}", after.split_at(1).1));
                    check(&format!("{before}{swap}{after}"));
                }
                check(before);
                check(after);
            }
            check(&known.replace('s', "\u{17f}"));
        }
        for other in ["", "email", "email_verified", "name", "azp", "sid", "acr", "Email", "nöthing", "ſ"] {
            check(other);
        }
        assert!(found > 40, "{found}");
    }
}
