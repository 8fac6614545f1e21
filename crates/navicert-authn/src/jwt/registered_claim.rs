//! The registered claims that a verifier reads, matched by name as Go does.

/// The registered claims that a verifier reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisteredClaim {
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

impl RegisteredClaim {
    const ALL: [RegisteredClaim; 10] = [
        RegisteredClaim::Issuer,
        RegisteredClaim::Subject,
        RegisteredClaim::Audience,
        RegisteredClaim::Expiry,
        RegisteredClaim::IssuedAt,
        RegisteredClaim::NotBefore,
        RegisteredClaim::Nonce,
        RegisteredClaim::AccessTokenHash,
        RegisteredClaim::ClaimNames,
        RegisteredClaim::ClaimSources,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            RegisteredClaim::Issuer => "iss",
            RegisteredClaim::Subject => "sub",
            RegisteredClaim::Audience => "aud",
            RegisteredClaim::Expiry => "exp",
            RegisteredClaim::IssuedAt => "iat",
            RegisteredClaim::NotBefore => "nbf",
            RegisteredClaim::Nonce => "nonce",
            RegisteredClaim::AccessTokenHash => "at_hash",
            RegisteredClaim::ClaimNames => "_claim_names",
            RegisteredClaim::ClaimSources => "_claim_sources",
        }
    }

    /// The claim with this exact name.
    fn exact(name: &[u8]) -> Option<RegisteredClaim> {
        Some(match name {
            b"iss" => RegisteredClaim::Issuer,
            b"sub" => RegisteredClaim::Subject,
            b"aud" => RegisteredClaim::Audience,
            b"exp" => RegisteredClaim::Expiry,
            b"iat" => RegisteredClaim::IssuedAt,
            b"nbf" => RegisteredClaim::NotBefore,
            b"nonce" => RegisteredClaim::Nonce,
            b"at_hash" => RegisteredClaim::AccessTokenHash,
            b"_claim_names" => RegisteredClaim::ClaimNames,
            b"_claim_sources" => RegisteredClaim::ClaimSources,
            _ => return None,
        })
    }

    /// The claim that Go matches with this name.
    pub(super) fn find(name: &str) -> Option<RegisteredClaim> {
        // First letter and length exclude most names: `ſ` starts with 0xc5.
        let first = name.as_bytes().first()? | 0x20;
        if !matches!(first, b'i' | b's' | b'a' | b'e' | b'n' | 0x7f | 0xe5) {
            return None;
        }
        if !matches!((name.len(), first), (3, _) | (5, b'n') | (7, b'a') | (12 | 14, 0x7f)) && name.is_ascii()
        {
            return None;
        }
        let exact = RegisteredClaim::exact(name.as_bytes());
        // Names in lower case match exactly or not at all.
        if exact.is_some() || name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'0'..=b'9')) {
            return exact;
        }
        RegisteredClaim::ALL.into_iter().find(|known| go_name_matches(name, known.name()))
    }
}

/// Whether Go matches this name with the known one: in any case, with two letters that fold to ASCII.
// S130
pub(crate) fn go_name_matches(name: &str, known: &str) -> bool {
    let fold = |symbol: char| match symbol {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    // Non-ASCII letters that fold to ASCII are longer.
    (name.len() == known.len() && name.eq_ignore_ascii_case(known))
        || (name.len() > known.len()
            && !name.is_ascii()
            && name.chars().map(fold).eq(known.chars().map(fold)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S130: the fast path and the full comparison agree.
    #[test]
    fn claims_are_found_by_every_name_that_go_matches() {
        let long_way =
            |name: &str| RegisteredClaim::ALL.into_iter().find(|known| go_name_matches(name, known.name()));
        let mut found = 0;
        let mut check = |name: &str| {
            assert_eq!(RegisteredClaim::find(name), long_way(name), "{name:?}");
            found += usize::from(long_way(name).is_some());
        };
        for known in RegisteredClaim::ALL.map(RegisteredClaim::name) {
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
