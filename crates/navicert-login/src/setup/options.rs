//! How `setup` writes what it proposes.

use navicert_types::{Secret, redact};

use super::StorageChoice;
use crate::args::ParsedFlags;
use crate::error::LoginError;

/// A version of a Kubernetes API that exists as beta and as stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupApiVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl SetupApiVersion {
    /// The text of the version.
    pub fn as_str(self) -> &'static str {
        match self {
            SetupApiVersion::V1 => "v1",
            SetupApiVersion::V1Beta1 => "v1beta1",
        }
    }
}

/// Names and versions in the files that `setup` proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupOptions {
    /// The name of the kubeconfig's user.
    pub user: String,
    /// The version of `ExecCredential`.
    pub exec_version: SetupApiVersion,
    /// The version of `AuthenticationConfiguration`.
    pub authn_version: SetupApiVersion,
    /// Variables that the kubeconfig's user sets for the program, with their values.
    pub variables: Vec<(String, Secret<String>)>,
    /// How the storage of the sessions is chosen.
    pub storage: StorageChoice,
}

impl Default for SetupOptions {
    fn default() -> Self {
        SetupOptions {
            user: "oidc".to_owned(),
            exec_version: SetupApiVersion::V1,
            authn_version: SetupApiVersion::V1Beta1,
            variables: Vec::new(),
            storage: StorageChoice::NotTried,
        }
    }
}

impl SetupOptions {
    /// The options that flags of `login setup` give. `user` is the name if none is given.
    ///
    /// # Errors
    /// A version is unknown.
    // L1110, L1111
    pub fn from_flags(flags: &ParsedFlags, user: Option<&str>) -> Result<Self, LoginError> {
        let defaults = SetupOptions::default();
        let version = |name: &str, default: SetupApiVersion| match flags.filled(name).as_deref() {
            None => Ok(default),
            Some("v1") => Ok(SetupApiVersion::V1),
            Some("v1beta1") => Ok(SetupApiVersion::V1Beta1),
            Some(_) => Err(LoginError::Usage(format!("invalid value of --{name}: expected v1 or v1beta1"))),
        };
        Ok(SetupOptions {
            user: flags.filled("user").or(user.map(ToOwned::to_owned)).unwrap_or(defaults.user),
            exec_version: version("exec-api-version", defaults.exec_version)?,
            authn_version: version("authn-api-version", defaults.authn_version)?,
            variables: defaults.variables,
            storage: match flags.text("token-cache-storage") {
                Some(_) => StorageChoice::Given,
                None => StorageChoice::NotTried,
            },
        })
    }

    /// The variables whose values can be printed.
    pub(super) fn printed_variables(&self) -> impl Iterator<Item = &(String, Secret<String>)> {
        self.variables.iter().filter(|variable| !may_be_secret(variable))
    }

    /// The other variables.
    pub(super) fn hidden_variables(&self) -> impl Iterator<Item = &(String, Secret<String>)> {
        self.variables.iter().filter(|variable| may_be_secret(variable))
    }
}

/// Whether it is named like a secret, or is a URL with a password.
fn may_be_secret((name, value): &(String, Secret<String>)) -> bool {
    redact::is_secret_name(name) || redact::url(value.expose()) != value.expose().as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{SETUP_FLAGS, parse_with};

    // L1110, L1111
    #[test]
    fn versions_are_those_that_kubernetes_has() {
        let options =
            |words: &[&str]| SetupOptions::from_flags(&parse_with(words, SETUP_FLAGS).unwrap(), Some("ann"));
        let found = options(&["--exec-api-version=v1beta1", "--authn-api-version", "v1"]).unwrap();
        assert_eq!(
            (found.exec_version, found.authn_version, found.user.as_str()),
            (SetupApiVersion::V1Beta1, SetupApiVersion::V1, "ann")
        );
        assert_eq!(options(&["--user=bob"]).unwrap().user, "bob");
        let error = options(&["--authn-api-version=v1alpha1"]).unwrap_err().to_string();
        assert_eq!(error, "invalid value of --authn-api-version: expected v1 or v1beta1");
    }

    // L1113
    #[test]
    fn variables_that_may_be_secret_are_not_printed() {
        let variable = |name: &str, value: &str| (name.to_owned(), Secret::new(value.to_owned()));
        let options = SetupOptions {
            variables: vec![
                variable("NO_PROXY", "a@b,.example"),
                variable("HTTPS_PROXY", "http://u:canary@proxy:3128"),
                variable("HTTP_PROXY", "http://proxy:3128"),
                variable("VAULT_TOKEN", "canary"),
            ],
            ..SetupOptions::default()
        };
        let printed: Vec<&str> = options.printed_variables().map(|(name, _)| name.as_str()).collect();
        let hidden: Vec<&str> = options.hidden_variables().map(|(name, _)| name.as_str()).collect();
        assert_eq!(hidden, ["NO_PROXY", "HTTPS_PROXY", "VAULT_TOKEN"], "in doubt, not printed");
        assert_eq!(printed, ["HTTP_PROXY"]);
    }
}
