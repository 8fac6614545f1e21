//! Parses the registry host of an image and decides which provider's credentials it may get.
//!
//! A host belongs to a provider only if all its labels match (GO-2026-6225). Ambiguous names belong to no provider.
// I198

mod acr;
mod ecr;
mod gcp;

use thiserror::Error;

pub(crate) use acr::{AcrHost, RegistrySuffixes};
pub(crate) use ecr::{EcrHost, Partition};
pub(crate) use gcp::is_google;

/// Host of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    written: String,
    name: String,
}

/// Why an image's registry cannot belong to any provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum HostError {
    /// The image name contains white space or a control character.
    #[error("image name contains white space or a control character")]
    Character,
    /// The registry is not a plain host name.
    #[error("registry is not a plain host name")]
    Name,
    /// The registry has a port other than 443.
    #[error("registry port is not 443")]
    Port,
    /// The image has a scheme other than `https`.
    #[error("scheme is not `https`")]
    Scheme,
}

impl Host {
    /// Parses the host of an image name.
    ///
    /// # Errors
    /// [`HostError`].
    pub(crate) fn from_image(image: &str) -> Result<Self, HostError> {
        if image.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(HostError::Character);
        }
        let image = image.strip_prefix("https://").unwrap_or(image);
        if image.contains("://") {
            return Err(HostError::Scheme);
        }
        let written = image.split('/').next().unwrap_or_default();
        let (name, port) = written.split_once(':').map_or((written, None), |(name, port)| (name, Some(port)));
        if !is_name(name) {
            return Err(HostError::Name);
        }
        // Port 443 is the default. No registry of these clouds uses another port.
        if port.is_some_and(|port| port != "443") {
            return Err(HostError::Port);
        }
        Ok(Host { written: written.to_owned(), name: name.to_ascii_lowercase() })
    }

    /// The host as written in the image; the key of its credentials.
    pub(crate) fn key(&self) -> &str {
        &self.written
    }

    /// The host in lowercase, without a port.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The labels before a domain suffix, if the host ends with it at a label boundary.
    pub(crate) fn strip_domain_suffix(&self, suffix: &str) -> Option<&str> {
        self.name.strip_suffix(suffix)?.strip_suffix('.').filter(|rest| !rest.is_empty())
    }
}

/// The text before an image's first slash, in lowercase, for exact comparison with configured hosts.
pub(crate) fn authority(image: &str) -> String {
    let image = image.strip_prefix("https://").unwrap_or(image);
    image.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Accepts ASCII letters, digits and inner hyphens in at least two labels, without a trailing dot.
fn is_name(name: &str) -> bool {
    name.len() <= 253 && name.contains('.') && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_plain_hosts_and_rejects_ambiguous_ones() {
        // I169
        for (image, name, key) in [
            ("a.example/x", "a.example", "a.example"),
            ("A.Example/x", "a.example", "A.Example"),
            ("a.example:443/x", "a.example", "a.example:443"),
            ("https://a.example/x", "a.example", "a.example"),
        ] {
            let host = Host::from_image(image).unwrap();
            assert_eq!((host.name(), host.key()), (name, key));
        }
        for image in [
            "",
            "/",
            "x",
            "localhost/x",
            "a.example./x",
            ".a.example/x",
            "a..example/x",
            "-a.example/x",
            "a-.example/x",
            "u@a.example/x",
            "u:p@a.example/x",
            "a.example:8443/x",
            "a.example:/x",
            "a.example:443:443/x",
            "a.example\\x",
            "a.example%2f/x",
            "a.example?x",
            "a.example#x",
            "a.example\n/x",
            "a.example/x\n",
            "a.example /x",
            "http://a.example/x",
            "ftp://a.example/x",
            "https://https://a.example",
            "аzurecr.io/x",
            "a.xn--/x",
            "[::1]/x",
            "a_b.example/x",
            "*.example/x",
        ] {
            assert!(Host::from_image(image).is_err(), "{image:?}");
        }
        let long = format!("{}.example/x", "a".repeat(64));
        assert!(Host::from_image(&long).is_err());
    }

    #[test]
    fn matches_domain_suffix_at_label_boundary() {
        let under = |image: &str| {
            Host::from_image(image).unwrap().strip_domain_suffix("azurecr.io").map(str::to_owned)
        };
        assert_eq!(under("a.azurecr.io"), Some("a".to_owned()));
        assert_eq!(under("a.b.azurecr.io"), Some("a.b".to_owned()));
        for image in ["azurecr.io", "aazurecr.io", "a.azurecr.io.evil.example", "a.azurecr-io.example"] {
            assert_eq!(under(image), None, "{image}");
        }
    }
}
