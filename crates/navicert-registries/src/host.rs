//! Which registry an image names, and whose it is: the one place that decides who may see a credential.
//!
//! A host is read whole, label by label, and belongs to a provider only if every label fits, from the first to the
//! last (GO-2026-6225, I198). What could be read in two ways is nobody's.

mod acr;
mod ecr;
mod gcp;

use thiserror::Error;

pub use acr::{AcrHost, RegistrySuffixes};
pub use ecr::{EcrHost, PARTITIONS, Partition};
pub use gcp::is_google;

/// A registry's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    written: String,
    name: String,
}

/// Why an image names no registry that anybody has credentials for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// A character that no image has.
    #[error("it has white space or a control character in it")]
    Character,
    /// Something other than a name in lower or upper case.
    #[error("its registry is not a plain host name")]
    Name,
    /// The registries here are served on the usual port only.
    #[error("its registry has a port other than 443")]
    Port,
    /// In the clear.
    #[error("it begins with a scheme other than `https`")]
    Scheme,
}

impl Host {
    /// The host of an image's name.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn from_image(image: &str) -> Result<Self, HostError> {
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
        // The same server, spelled out. Any other port is another server on a host that has none.
        if port.is_some_and(|port| port != "443") {
            return Err(HostError::Port);
        }
        Ok(Host { written: written.to_owned(), name: name.to_ascii_lowercase() })
    }

    /// As the image has it: the key under which its credentials are found again.
    pub fn key(&self) -> &str {
        &self.written
    }

    /// In lower case, without a port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The labels in front of this suffix, if the host ends with it at a label's boundary.
    pub fn strip_domain_suffix(&self, suffix: &str) -> Option<&str> {
        self.name.strip_suffix(suffix)?.strip_suffix('.').filter(|rest| !rest.is_empty())
    }
}

/// What an image has in front of its first slash, in lower case: to be compared, whole, with what an operator wrote.
pub fn authority(image: &str) -> String {
    let image = image.strip_prefix("https://").unwrap_or(image);
    image.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Letters, digits and inner hyphens, in at least two labels; no dot at the end, no encoding, no other alphabet.
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
    fn a_host_is_read_whole_or_not_at_all() {
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
    fn a_suffix_ends_at_a_labels_boundary() {
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
