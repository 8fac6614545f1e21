//! Environment variables. Only this module reads them; all others take values.

use std::ffi::OsString;
use std::path::PathBuf;

use navicert_login::kubeconfig_user::plugin_environment;
use navicert_types::Secret;

/// An environment variable and its meaning. A test compares the list with docs/environment.md.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// Every variable navicert itself reads.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable { name: "KUBECONFIG", meaning: "kubeconfig files to merge, separated as in `PATH`" },
    Variable { name: "HOME", meaning: "directory of `.kube/config` and `.kube/kuberc`" },
    Variable {
        name: "KUBERC",
        meaning: "kuberc file with the policy for credential plugins; `off` disables it",
    },
    Variable { name: "KUBECTL_KUBERC", meaning: "`false` disables kuberc" },
    Variable {
        name: "HTTPS_PROXY",
        meaning: "proxy for https servers without `proxy-url`; also read in lower case, like the next two",
    },
    Variable { name: "HTTP_PROXY", meaning: "proxy for http servers" },
    Variable { name: "NO_PROXY", meaning: "hosts to connect to without a proxy" },
    Variable { name: "DISABLE_HTTP2", meaning: "any value disables HTTP/2" },
    Variable {
        name: "HTTP2_READ_IDLE_TIMEOUT_SECONDS",
        meaning: "idle time before an HTTP/2 connection is checked with a ping",
    },
    Variable { name: "HTTP2_PING_TIMEOUT_SECONDS", meaning: "timeout of that ping" },
    Variable {
        name: "KUBERNETES_SERVICE_HOST",
        meaning: "in a pod: host of the API server, used without a kubeconfig",
    },
    Variable { name: "KUBERNETES_SERVICE_PORT", meaning: "in a pod: port of the API server" },
    Variable { name: "POD_NAMESPACE", meaning: "in a pod: the namespace" },
    Variable {
        name: "NAVICERT_IMAGE_CONFIG",
        meaning: "credential provider configuration, file or directory",
    },
    Variable { name: "NAVICERT_IMAGE_BIN_DIR", meaning: "directory of the credential provider executables" },
    Variable {
        name: "NAVICERT_IMAGE_SOCKET",
        meaning: "socket of the daemon behind `docker-credential-navicert`",
    },
    Variable {
        name: "NAVICERT_IMAGE_SCOPES",
        meaning: "repository path to look up per registry host: `host=host/path`, comma-separated",
    },
    Variable {
        name: "NAVICERT_IMAGE_MIRRORS",
        meaning: "registry whose credentials to use for a mirror: `mirror=registry`, comma-separated",
    },
    Variable { name: "NAVICERT_PKCS11_MODULE", meaning: "default PKCS#11 module" },
    Variable {
        name: "NAVICERT_PINENTRY",
        meaning: "program that prompts for the PIN of a token, instead of the terminal",
    },
    Variable { name: "NAVICERT_SIGNER_SOCKET", meaning: "socket of `navicert signer serve`" },
    Variable { name: "XDG_CONFIG_HOME", meaning: "directory of `navicert/image`, instead of `~/.config`" },
    Variable {
        name: "XDG_RUNTIME_DIR",
        meaning: "directory of the sockets (`navicert/exec-plugin.sock`, `navicert/image.sock`, `navicert/signer.sock`) and the files of gateways; the desktop session's bus without `DBUS_SESSION_BUS_ADDRESS`",
    },
    Variable {
        name: "DBUS_SESSION_BUS_ADDRESS",
        meaning: "the desktop session's bus, for `login --token-cache-storage=keyring`",
    },
    Variable {
        name: "TMPDIR",
        meaning: "directory of the sockets and the files of gateways without `XDG_RUNTIME_DIR`",
    },
    Variable { name: "NAVICERT_LOGIN_DIR", meaning: "cache folder of `navicert login`" },
    Variable { name: "KUBECACHEDIR", meaning: "folder of the cache folder `navicert-login`, if set" },
    Variable {
        name: "XDG_STATE_HOME",
        meaning: "folder of the cache folder `navicert/login`, instead of `~/.local/state`",
    },
    Variable {
        name: "NAVICERT_LOGIN_PROMPT",
        meaning: "when `navicert login` may ask a person, instead of `--prompt-when`",
    },
    Variable { name: "CI", meaning: "`true` or `1`: no person is present" },
    Variable { name: "BROWSER", meaning: "commands that open a browser, separated by colons" },
    Variable { name: "DISPLAY", meaning: "if set, there is a desktop with a browser" },
    Variable { name: "WAYLAND_DISPLAY", meaning: "if set, there is a desktop with a browser" },
    Variable { name: "WSL_DISTRO_NAME", meaning: "if set, Windows' browser is used" },
    Variable {
        name: "SSH_CONNECTION",
        meaning: "if set, as the next two, there is no browser on this machine",
    },
    Variable { name: "SSH_TTY", meaning: "as `SSH_CONNECTION`" },
    Variable { name: "SSH_CLIENT", meaning: "as `SSH_CONNECTION`" },
    Variable {
        name: "ACTIONS_ID_TOKEN_REQUEST_URL",
        meaning: "in GitHub Actions: address of the token service, for `--subject-token=github-actions`",
    },
    Variable { name: "ACTIONS_ID_TOKEN_REQUEST_TOKEN", meaning: "in GitHub Actions: token for that service" },
    Variable { name: "NO_COLOR", meaning: "any value disables colours" },
    Variable { name: "CLICOLOR_FORCE", meaning: "any value forces colours, even into a pipe" },
];

/// The process environment at startup.
#[derive(Debug)]
pub(crate) struct Environment {
    /// `KUBECONFIG`, if set (also when empty).
    pub(crate) kubeconfig: Option<OsString>,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// All variables, which plugins inherit. Its `Debug` shows no values.
    pub(crate) inherited: navicert_plugin::Environment,
    /// The working directory, which relative paths on the command line are resolved against.
    pub(crate) current_dir: PathBuf,
}

impl Environment {
    /// Reads the process's environment.
    #[expect(clippy::disallowed_methods, reason = "the only function that reads the environment")]
    pub(crate) fn read() -> Self {
        Environment {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            inherited: std::env::vars_os().collect(),
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        }
    }

    /// The environment of a plugin for which a kubeconfig sets these variables.
    pub(crate) fn with_variables(&self, variables: &[(String, Secret<String>)]) -> Self {
        let inherited = plugin_environment(&self.inherited, variables);
        let home = inherited.variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let (kubeconfig, current_dir) = (self.kubeconfig.clone(), self.current_dir.clone());
        Environment { kubeconfig, home, inherited, current_dir }
    }

    /// The value of a variable at startup.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.inherited.variable(name).map(ToOwned::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::VARIABLES;

    #[test]
    fn docs_list_exactly_the_variables_that_are_read() {
        let page = include_str!("../../../docs/environment.md");
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = VARIABLES
            .iter()
            .map(|variable| format!("| `{}` | {} |", variable.name, variable.meaning))
            .collect();
        assert_eq!(listed, expected);
    }
}
