//! Normalizes a pod's `image:` to the repository name that patterns match.
//!
//! Follows the grammar of Docker references. Tag and digest are validated, then removed.
// I81–I86

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Maximum length of a repository path.
const MAX_PATH_BYTES: usize = 255;

/// A repository name: registry and path, without tag and digest.
///
/// ```
/// use navicert_image::Repository;
///
/// assert_eq!(Repository::from_image("busybox").unwrap().as_str(), "docker.io/library/busybox");
/// assert_eq!(Repository::from_image("registry.example:5000/a/b:v1").unwrap().as_str(), "registry.example:5000/a/b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repository(String);

/// Why an image name is invalid. The kubelet fails such a pull before it looks up credentials.
// I84
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The name is empty.
    #[error("empty image name")]
    Empty,
    /// 64 hexadecimal digits are an image ID.
    #[error("`{0}` is an image ID, not an image name")]
    Identifier(String),
    /// The path has uppercase letters.
    #[error("`{0}`: repository name must be lowercase")]
    UpperCase(String),
    /// The name starts with a scheme.
    #[error("`{0}`: image name must not have a scheme; remove `https://`")]
    Scheme(String),
    /// The registry is not a host name.
    #[error("invalid registry host name `{0}`")]
    Registry(String),
    /// A path component is invalid.
    #[error("invalid repository path component `{0}`")]
    Component(String),
    /// The tag is invalid.
    #[error("invalid tag `{0}`")]
    Tag(String),
    /// The digest is invalid.
    #[error("invalid digest `{0}`")]
    Digest(String),
    /// The path is longer than 255 bytes.
    #[error("repository name is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
}

impl Repository {
    /// Normalizes an image name.
    ///
    /// # Errors
    /// [`ReferenceError`] if the name is invalid.
    pub fn from_image(image: &str) -> Result<Self, ReferenceError> {
        if image.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(ReferenceError::Identifier(image.to_owned()));
        }
        if image.contains("://") {
            return Err(ReferenceError::Scheme(without_user_info(image)));
        }
        let (registry, path) = split_registry(image);
        let (path, tag, digest) = split_tag_and_digest(path);
        check_registry(registry)?;
        path.split('/').try_for_each(check_component)?;
        tag.map_or(Ok(()), check_tag)?;
        digest.map_or(Ok(()), check_digest)?;
        let library = if registry == "docker.io" && !path.contains('/') { "library/" } else { "" };
        if library.len() + path.len() > MAX_PATH_BYTES {
            return Err(ReferenceError::TooLong);
        }
        Ok(Repository(format!("{registry}/{library}{path}")))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The registry: the text before the first slash.
    pub fn registry(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

impl FromStr for Repository {
    type Err = ReferenceError;

    /// As [`Repository::from_image`].
    fn from_str(image: &str) -> Result<Self, ReferenceError> {
        Repository::from_image(image)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Splits off the registry. The first component is a registry only if it looks like a host; `index.docker.io` becomes
/// `docker.io`.
// I82, I83
fn split_registry(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some(("index.docker.io", path)) => ("docker.io", path),
        Some((first, path))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.chars().any(char::is_uppercase) =>
        {
            (first, path)
        }
        _ => ("docker.io", image),
    }
}

fn split_tag_and_digest(path: &str) -> (&str, Option<&str>, Option<&str>) {
    let (rest, digest) = match path.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (path, None),
    };
    match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag), digest),
        None => (rest, None, digest),
    }
}

/// Accepts a host name with an optional port, or an IPv6 address in brackets. Like Docker's grammar it also accepts a
/// valid path component (`my_registry.example/app`).
fn check_registry(registry: &str) -> Result<(), ReferenceError> {
    let invalid = || ReferenceError::Registry(registry.to_owned());
    let (host, port) = match registry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (registry, None),
    };
    if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(invalid());
    }
    let is_ipv6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inside| {
        !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
    });
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(plain) && !label.starts_with('-') && !label.ends_with('-')
    };
    let is_part_of_a_path = port.is_none() && check_component(host).is_ok();
    if is_ipv6 || host.split('.').all(is_label) || is_part_of_a_path { Ok(()) } else { Err(invalid()) }
}

/// Accepts lowercase letters and digits, separated by `.`, `_`, `__` or dashes.
fn check_component(component: &str) -> Result<(), ReferenceError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut rest = component;
    loop {
        let after_word = rest.trim_start_matches(plain);
        if after_word.len() == rest.len() {
            break;
        }
        if after_word.is_empty() {
            return Ok(());
        }
        let after_separator = after_word.trim_start_matches(|c: char| !plain(c));
        let separator = after_word.strip_suffix(after_separator).unwrap_or_default();
        let legal = matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-');
        if !legal {
            break;
        }
        rest = after_separator;
    }
    if component.chars().any(char::is_uppercase) {
        return Err(ReferenceError::UpperCase(component.to_owned()));
    }
    Err(ReferenceError::Component(component.to_owned()))
}

fn check_tag(tag: &str) -> Result<(), ReferenceError> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = tag.bytes();
    let legal =
        bytes.next().is_some_and(word) && bytes.all(|byte| word(byte) || byte == b'.' || byte == b'-');
    if legal && tag.len() <= 128 { Ok(()) } else { Err(ReferenceError::Tag(tag.to_owned())) }
}

fn check_digest(digest: &str) -> Result<(), ReferenceError> {
    let invalid = || ReferenceError::Digest(digest.to_owned());
    let (algorithm, hex) = digest.split_once(':').ok_or_else(invalid)?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(invalid()),
    };
    let legal = hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if legal { Ok(()) } else { Err(invalid()) }
}

/// Removes user info for error messages; a pasted URL may contain a password.
fn without_user_info(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn normalizes_images_to_repositories() {
        // I81, I82, I83, I85, I86, I276
        let digest = "a".repeat(64);
        let pinned = format!("registry.io:5000/a/b:t@sha256:{digest}");
        for (image, expected) in [
            ("busybox", "docker.io/library/busybox"),
            ("foo/bar:1", "docker.io/foo/bar"),
            ("index.docker.io/foo/bar", "docker.io/foo/bar"),
            ("index.docker.io/busybox", "docker.io/library/busybox"),
            ("docker.io/busybox", "docker.io/library/busybox"),
            ("registry-1.docker.io/x", "registry-1.docker.io/x"),
            ("localhost/foo", "localhost/foo"),
            ("my_reg/foo", "docker.io/my_reg/foo"),
            ("my_reg.example/foo", "my_reg.example/foo"),
            ("UPPER/foo", "UPPER/foo"),
            ("Foo.io/bar", "Foo.io/bar"),
            ("registry.io", "docker.io/library/registry.io"),
            ("registry.io:5000", "docker.io/library/registry.io"),
            (&pinned, "registry.io:5000/a/b"),
            ("[::1]:5000/foo", "[::1]:5000/foo"),
            ("a.io/b__c/d---e/f.g_h", "a.io/b__c/d---e/f.g_h"),
        ] {
            assert_eq!(Repository::from_image(image).map(|name| name.0), Ok(expected.to_owned()), "{image}");
        }
    }

    #[test]
    fn rejects_invalid_image_names() {
        // I84
        let identifier = "0".repeat(64);
        let long = format!("a.io/{}", "a".repeat(256));
        let bad_digest = format!("a.io/b@sha256:{}", "A".repeat(64));
        for image in [
            "",
            "registry.io/Foo",
            "https://registry.io/foo",
            &identifier,
            &long,
            &bad_digest,
            "a.io/",
            "a.io//b",
            "a.io/b:",
            "a.io/b:-t",
            "a.io/b@sha256:abcd",
            "a.io/b@md5:d41d8cd98f00b204e9800998ecf8427e",
            "a.io:x/b",
            "a.io:/b",
            "-a.io/b",
            "a..io/b",
            "a.io/b___c",
            "a.io/b._c",
            "a.io/.b",
            "a.io/b.",
            "a.io/b c",
            "a.io/b\n",
            "a.io/b\0",
            "u:p@a.io/b",
            "a.io/ü",
            "*.io/b",
            "a_b.io:5000/c",
        ] {
            assert!(Repository::from_image(image).is_err(), "{image:?}");
        }
    }

    #[test]
    fn errors_do_not_repeat_a_pasted_password() {
        let shown = Repository::from_image("https://me:canary@registry.io/foo").unwrap_err().to_string();
        assert!(!shown.contains("canary"), "{shown}");
    }

    proptest! {
        #[test]
        fn normalization_is_idempotent(image in "[a-zA-Z0-9.:/_@-]{0,40}") {
            if let Ok(repository) = Repository::from_image(&image) {
                prop_assert_eq!(Repository::from_image(repository.as_str()), Ok(repository.clone()));
            }
        }

        #[test]
        fn never_panics(image in any::<String>()) {
            let _ = Repository::from_image(&image);
        }
    }
}
