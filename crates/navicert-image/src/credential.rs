//! Registry credentials.

use navicert_types::Secret;
use sha2::{Digest, Sha256};

use crate::cache_key::hex;
use crate::go_json::Object;

/// A user name and a password for a registry. If both are empty, the pull is explicitly anonymous.
// I108
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryCredential {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
    /// The e-mail address from docker's configuration files; used only for the hash.
    pub email: String,
}

impl RegistryCredential {
    /// Creates a credential without an e-mail address.
    pub fn new(username: impl Into<String>, password: impl Into<Secret<String>>) -> Self {
        RegistryCredential { username: username.into(), password: password.into(), email: String::new() }
    }

    /// Whether user name and password are both empty.
    pub fn is_anonymous(&self) -> bool {
        self.username.is_empty() && self.password.is_empty()
    }

    /// The kubelet's hash of a credential, used to recognize credentials of earlier pulls.
    // I141
    pub fn hash(&self) -> String {
        let text = Object::new()
            .text_if_nonempty("username", &self.username)
            .text_if_nonempty("password", self.password.expose())
            .text_if_nonempty("email", &self.email)
            .finish();
        hex(&Sha256::digest(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_the_kubelets() {
        // I141, I271
        let hash = |username: &str, password: &str, email: &str| {
            RegistryCredential {
                email: email.to_owned(),
                ..RegistryCredential::new(username, password.to_owned())
            }
            .hash()
        };
        for (credential, expected) in [
            (hash("u", "p", ""), "edbd57ca9372e64eb1c9070ecf3a049ac553596b0529acf034c7a71d4e618e88"),
            (hash("", "", ""), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
            (
                hash("_token", "a<b>&c", ""),
                "3746ab9095a9ba29c0f97cb101ff630c64275d98d19e8033523895b4891397c5",
            ),
            (
                hash("ada", "smash", "ada@example.com"),
                "353258b53f5e9a57b059eab3f05312fc35bbeb874f08ce101e7bf0bf46977423",
            ),
        ] {
            assert_eq!(credential, expected);
        }
    }

    #[test]
    fn debug_hides_the_password() {
        let shown = format!("{:?}", RegistryCredential::new("me", "canary".to_owned()));
        assert!(shown.contains("me") && !shown.contains("canary"), "{shown}");
    }
}
