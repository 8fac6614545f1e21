//! Default paths of the configuration, the plugin executables and the daemon's socket for a user's programs. The
//! environment is passed in as a function.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::docker_helper::{ScopeError, Scopes, parse_mirrors, parse_scopes};

/// Path of the configuration file or directory.
pub const CONFIG_VARIABLE: &str = "NAVICERT_IMAGE_CONFIG";
/// Directory of the plugin executables.
pub const BIN_DIR_VARIABLE: &str = "NAVICERT_IMAGE_BIN_DIR";
/// Path of the daemon's socket.
pub const SOCKET_VARIABLE: &str = "NAVICERT_IMAGE_SOCKET";
/// Scopes within registries: comma-separated `host=host/path`.
// I234
pub const SCOPES_VARIABLE: &str = "NAVICERT_IMAGE_SCOPES";

/// Mirrors and the registries whose credentials they use: comma-separated `mirror=registry`.
// I253
pub const MIRRORS_VARIABLE: &str = "NAVICERT_IMAGE_MIRRORS";

/// The paths and scopes of a user's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPaths {
    /// Configuration file or directory.
    pub config: PathBuf,
    /// Directory of the plugin executables.
    pub bin_dir: PathBuf,
    /// The daemon's socket; `None` without a private runtime directory.
    pub socket: Option<PathBuf>,
    /// Scopes and mirrors.
    pub scopes: Scopes,
}

impl DefaultPaths {
    /// Reads the environment: navicert's variables first, then the user's directories, then `/etc`.
    ///
    /// # Errors
    /// An invalid scope or mirror.
    pub fn new(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ScopeError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| variable(name).map(PathBuf::from);
        let home_config = path("XDG_CONFIG_HOME").or_else(|| path("HOME").map(|home| home.join(".config")));
        let dir = home_config.map(|dir| dir.join("navicert/image")).filter(|dir| dir.is_dir());
        let dir = dir.unwrap_or_else(|| PathBuf::from("/etc/navicert/image"));
        let text = |name: &str| variable(name).map(|text| text.to_string_lossy().into_owned());
        let mut scopes = parse_scopes(&text(SCOPES_VARIABLE).unwrap_or_default())?;
        scopes.extend(parse_mirrors(&text(MIRRORS_VARIABLE).unwrap_or_default())?);
        Ok(DefaultPaths {
            config: path(CONFIG_VARIABLE).unwrap_or_else(|| dir.join("config")),
            bin_dir: path(BIN_DIR_VARIABLE).unwrap_or_else(|| dir.join("bin")),
            socket: DefaultPaths::socket(&variable),
            scopes,
        })
    }

    /// The socket path alone, for helpers that query the daemon.
    pub fn socket(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        path(SOCKET_VARIABLE).or_else(|| path("XDG_RUNTIME_DIR").map(|dir| dir.join("navicert/image.sock")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_take_precedence_over_user_and_system_paths() {
        let paths = |pairs: &'static [(&str, &str)]| {
            let find = |name: &str| {
                pairs.iter().find(|(found, _)| *found == name).map(|(_, value)| OsString::from(value))
            };
            DefaultPaths::new(&find)
        };
        let none = paths(&[("HOME", "/no/such")]).unwrap();
        assert_eq!(none.config, PathBuf::from("/etc/navicert/image/config"));
        assert_eq!((none.socket, none.scopes), (None, Scopes::new()));
        let own = paths(&[
            (CONFIG_VARIABLE, "/c"),
            (BIN_DIR_VARIABLE, "/b"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            (SCOPES_VARIABLE, "a=a/b"),
            (MIRRORS_VARIABLE, "m:5000=a"),
        ])
        .unwrap();
        assert_eq!((own.config, own.bin_dir), (PathBuf::from("/c"), PathBuf::from("/b")));
        assert_eq!(own.socket, Some(PathBuf::from("/run/user/1/navicert/image.sock")));
        let mut scopes = parse_scopes("a=a/b").unwrap();
        scopes.extend(parse_mirrors("m:5000=a").unwrap());
        assert_eq!(own.scopes, scopes);
        assert!(paths(&[(SCOPES_VARIABLE, "a")]).is_err() && paths(&[(MIRRORS_VARIABLE, "a/b=c")]).is_err());
    }
}
