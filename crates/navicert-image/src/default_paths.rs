//! Default paths of the configuration, the plugin executables and the daemon's socket for a user's programs. The
//! environment is passed in as a function.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use navicert_io::runtime_directory::RuntimeDirectory;

use crate::docker_helper::{ScopeError, Scopes, parse_mirrors, parse_scopes};

/// Path of the configuration file or directory.
pub const CONFIG_VARIABLE: &str = "NAVICERT_IMAGE_CONFIG";
/// Directory of the plugin executables.
pub(crate) const BIN_DIR_VARIABLE: &str = "NAVICERT_IMAGE_BIN_DIR";
/// Path of the daemon's socket.
pub const SOCKET_VARIABLE: &str = "NAVICERT_IMAGE_SOCKET";
/// Scopes within registries: comma-separated `host=host/path`.
// I234
pub(crate) const SCOPES_VARIABLE: &str = "NAVICERT_IMAGE_SCOPES";

/// Mirrors and the registries whose credentials they use: comma-separated `mirror=registry`.
// I253
pub(crate) const MIRRORS_VARIABLE: &str = "NAVICERT_IMAGE_MIRRORS";

/// The name of the socket in the user's runtime directory.
const SOCKET_NAME: &str = "image.sock";

/// The paths and scopes of a user's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPaths {
    /// Configuration file or directory.
    pub config: PathBuf,
    /// Directory of the plugin executables.
    pub bin_dir: PathBuf,
    /// The daemon's socket, in the user's [runtime directory](RuntimeDirectory); `None` if none can be private.
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
        let (config, bin_dir) = config_and_bin_dir(&variable);
        let text = |name: &str| variable(name).map(|text| text.to_string_lossy().into_owned());
        let mut scopes = parse_scopes(&text(SCOPES_VARIABLE).unwrap_or_default())?;
        scopes.extend(parse_mirrors(&text(MIRRORS_VARIABLE).unwrap_or_default())?);
        Ok(DefaultPaths { config, bin_dir, socket: DefaultPaths::socket(&variable), scopes })
    }

    /// The socket path alone, for helpers that query the daemon.
    pub fn socket(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        named_socket(variable).or_else(|| RuntimeDirectory::locate(variable).file(SOCKET_NAME))
    }

    /// Where a daemon creates its socket; creates the runtime directory.
    ///
    /// # Errors
    /// No private directory can be created.
    pub fn new_socket(variable: &dyn Fn(&str) -> Option<OsString>) -> io::Result<PathBuf> {
        let named = named_socket(variable).map(Ok);
        named.unwrap_or_else(|| Ok(RuntimeDirectory::locate(variable).create()?.join(SOCKET_NAME)))
    }
}

/// The configuration, and the directory of the plugin executables.
pub(crate) fn config_and_bin_dir(variable: &dyn Fn(&str) -> Option<OsString>) -> (PathBuf, PathBuf) {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home_config = path("XDG_CONFIG_HOME").or_else(|| path("HOME").map(|home| home.join(".config")));
    let dir = home_config.map(|dir| dir.join("navicert/image")).filter(|dir| dir.is_dir());
    let dir = dir.unwrap_or_else(|| PathBuf::from("/etc/navicert/image"));
    let config = path(CONFIG_VARIABLE).unwrap_or_else(|| dir.join("config"));
    let bin_dir = path(BIN_DIR_VARIABLE).unwrap_or_else(|| dir.join("bin"));
    (config, bin_dir)
}

fn named_socket(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    variable(SOCKET_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
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
        let none = paths(&[("HOME", "/no/such"), (SOCKET_VARIABLE, "/s")]).unwrap();
        assert_eq!(none.config, PathBuf::from("/etc/navicert/image/config"));
        assert_eq!((none.socket, none.scopes), (Some(PathBuf::from("/s")), Scopes::new()));
        let own = paths(&[
            (CONFIG_VARIABLE, "/c"),
            (BIN_DIR_VARIABLE, "/b"),
            (SCOPES_VARIABLE, "a=a/b"),
            (MIRRORS_VARIABLE, "m:5000=a"),
        ])
        .unwrap();
        assert_eq!((own.config, own.bin_dir), (PathBuf::from("/c"), PathBuf::from("/b")));
        let mut scopes = parse_scopes("a=a/b").unwrap();
        scopes.extend(parse_mirrors("m:5000=a").unwrap());
        assert_eq!(own.scopes, scopes);
        assert!(paths(&[(SCOPES_VARIABLE, "a")]).is_err() && paths(&[(MIRRORS_VARIABLE, "a/b=c")]).is_err());
    }

    #[test]
    fn socket_is_in_the_runtime_directory_and_exists_without_the_variable() {
        use std::os::unix::fs::PermissionsExt;
        let runtime = tempfile::tempdir().unwrap();
        std::fs::set_permissions(runtime.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let set = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.path().into());
        let socket = runtime.path().join("navicert/image.sock");
        std::fs::create_dir(socket.parent().unwrap()).unwrap();
        std::fs::set_permissions(socket.parent().unwrap(), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(&socket, "").unwrap();
        assert_eq!(DefaultPaths::socket(&set), Some(socket));
        let temporary = |name: &str| (name == "TMPDIR").then(|| runtime.path().into());
        assert!(DefaultPaths::socket(&temporary).unwrap().ends_with("image.sock"));
    }
}
