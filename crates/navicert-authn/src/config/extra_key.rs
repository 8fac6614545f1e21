//! Validates keys of `claimMappings.extra`.
// S43–S45

use navicert_types::FieldPath;

use super::violation::Violations;

/// Domains reserved for Kubernetes.
const RESERVED: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// Reports every violation of a non-empty key.
pub(super) fn check(key: &str, path: &FieldPath, violations: &mut Violations) {
    match key.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            if !is_subdomain(host) {
                violations.invalid(
                    path.clone(),
                    key,
                    "the part before the slash must be a lower-case RFC 1123 subdomain",
                );
            }
            if !rest.bytes().all(is_path_byte) {
                violations.invalid(
                    path.clone(),
                    key,
                    "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
                );
            }
        }
        _ => {
            violations.invalid(path.clone(), key, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        }
    }
    if key != key.to_lowercase() {
        violations.invalid(path.clone(), key, "must be lowercase");
    }
    let host = key.split('/').next().unwrap_or_default();
    let is_within = |domain: &&str| {
        host.strip_suffix(*domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    if RESERVED.iter().any(is_within) {
        let detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
        violations.invalid(path.clone(), key, detail);
    }
}

/// Whether a key is a DNS subdomain, a slash and a path, such as `example.org/team`.
pub fn is_domain_prefixed_path(key: &str) -> bool {
    key.split_once('/')
        .is_some_and(|(host, path)| is_subdomain(host) && !path.is_empty() && path.bytes().all(is_path_byte))
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)
}

fn is_subdomain(host: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S43–S45, VV17–VV21
    #[test]
    fn keys_are_domain_prefixed_lower_case_and_not_reserved() {
        let cases = [
            ("foo", 1),
            ("/x", 1),
            ("example.org/", 1),
            ("a_b/x", 1),
            ("example.org/a b", 1),
            ("example.org/é", 1),
            ("Example.org/x", 2),
            ("example.org/X", 1),
            ("example.org/a/b", 0),
            ("example.org/%2f", 0),
            ("xk8s.io/x", 0),
            ("k8s.io/x", 1),
            ("sub.k8s.io/x", 1),
            ("kubernetes.io/x", 1),
            ("authentication.kubernetes.io/credential-id", 1),
        ];
        for (key, count) in cases {
            let mut violations = Violations::default();
            check(key, &FieldPath::root().field("key"), &mut violations);
            assert_eq!(violations.len(), count, "{key}: {violations}");
        }
    }

    #[test]
    fn domain_prefixed_paths_are_recognised() {
        for key in ["example.org/foo", "k8s.io/x", "a/B%2f"] {
            assert!(is_domain_prefixed_path(key), "{key}");
        }
        for key in ["", "foo", "/foo", "a/", "A/b", "a_b/c", "a/b c", "-a/b"] {
            assert!(!is_domain_prefixed_path(key), "{key}");
        }
    }
}
