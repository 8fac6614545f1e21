//! The environment: the one room that reads it. Everything below takes values.

use std::ffi::OsString;
use std::path::PathBuf;

/// A variable navicert reads, and what for. docs/environment.md lists the same table, and a test compares them.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// Every variable navicert itself reads.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable { name: "KUBECONFIG", meaning: "kubeconfig files to merge, separated as in `PATH`" },
    Variable { name: "HOME", meaning: "where `.kube/config` and `.kube/kuberc` are looked for" },
    Variable {
        name: "KUBERC",
        meaning: "kuberc file with the policy for credential plugins; `off` for none",
    },
    Variable { name: "KUBECTL_KUBERC", meaning: "`false`: there is no kuberc" },
    Variable {
        name: "HTTPS_PROXY",
        meaning: "proxy for https servers, unless `proxy-url` names one; also in lower case, as the next two",
    },
    Variable { name: "HTTP_PROXY", meaning: "proxy for http servers" },
    Variable { name: "NO_PROXY", meaning: "servers that are reached without a proxy" },
    Variable { name: "DISABLE_HTTP2", meaning: "any value: HTTP/1.1 only" },
    Variable {
        name: "HTTP2_READ_IDLE_TIMEOUT_SECONDS",
        meaning: "how long an HTTP/2 connection may be silent before the server is asked",
    },
    Variable { name: "HTTP2_PING_TIMEOUT_SECONDS", meaning: "how long it may take to answer" },
    Variable {
        name: "KUBERNETES_SERVICE_HOST",
        meaning: "in a pod: the API server, when there is no kubeconfig",
    },
    Variable { name: "KUBERNETES_SERVICE_PORT", meaning: "in a pod: its port" },
    Variable { name: "POD_NAMESPACE", meaning: "in a pod: the namespace" },
    Variable {
        name: "NAVICERT_IMAGE_CONFIG",
        meaning: "credential provider configuration: a file or a folder",
    },
    Variable { name: "NAVICERT_IMAGE_BIN_DIR", meaning: "folder with the credential providers' executables" },
    Variable {
        name: "NAVICERT_IMAGE_SOCKET",
        meaning: "socket of the daemon behind `docker-credential-navicert`",
    },
    Variable {
        name: "NAVICERT_IMAGE_SCOPES",
        meaning: "which part of a registry is meant: `host=host/path`, separated by commas",
    },
    Variable {
        name: "NAVICERT_IMAGE_MIRRORS",
        meaning: "which registry's credentials a mirror takes: `mirror=registry`, separated by commas",
    },
    Variable {
        name: "NAVICERT_PKCS11_MODULE",
        meaning: "PKCS#11 module for keys whose URI or kubeconfig names none",
    },
    Variable {
        name: "NAVICERT_PINENTRY",
        meaning: "program that asks for the PIN of a token, instead of the terminal",
    },
    Variable { name: "NAVICERT_SIGNER_SOCKET", meaning: "socket of `navicert signer serve`" },
    Variable {
        name: "XDG_CONFIG_HOME",
        meaning: "where `navicert/image` is looked for, instead of `~/.config`",
    },
    Variable {
        name: "XDG_RUNTIME_DIR",
        meaning: "where the sockets are (`navicert/image.sock`, `navicert/signer.sock`) and the files of gateways",
    },
    Variable { name: "TMPDIR", meaning: "where the files of gateways are when there is no runtime folder" },
    Variable { name: "NO_COLOR", meaning: "any value: no colours" },
    Variable { name: "CLICOLOR_FORCE", meaning: "any value: colours even into a pipe" },
];

/// What was read from the environment at start.
#[derive(Debug)]
pub(crate) struct Environment {
    /// `KUBECONFIG`, if set (also when empty).
    pub(crate) kubeconfig: Option<OsString>,
    /// The home folder.
    pub(crate) home: Option<PathBuf>,
    /// Everything: what plugins inherit. Its `Debug` shows no values.
    pub(crate) inherited: navicert_plugin::Environment,
    /// The working folder; relative paths on the command line are relative to it.
    pub(crate) current_dir: PathBuf,
}

impl Environment {
    /// Reads the process's environment.
    #[expect(clippy::disallowed_methods, reason = "this is the one room that reads the environment")]
    pub(crate) fn read() -> Self {
        Environment {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            inherited: std::env::vars_os().collect(),
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        }
    }

    /// One variable, as it was at start.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.inherited.variable(name).map(ToOwned::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::VARIABLES;

    #[test]
    fn the_page_of_variables_lists_exactly_what_is_read() {
        let page = include_str!("../../../docs/environment.md");
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = VARIABLES
            .iter()
            .map(|variable| format!("| `{}` | {} |", variable.name, variable.meaning))
            .collect();
        assert_eq!(listed, expected);
    }
}
