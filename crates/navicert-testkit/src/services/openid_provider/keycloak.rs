//! Keycloak with the realm beside this file, its database in memory. `scripts/install-tools keycloak` installs it.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::free_address;
use crate::cli::program::{Program, Running};
use crate::cli::tools;
use crate::pki::ca::Ca;

/// A start creates the database; a busy machine takes two minutes for that.
const START_LIMIT: Duration = Duration::from_mins(5);

/// Its start script stays and starts Java as a child: both are a process group, which ends with standard input.
const SCRIPT: &str = r#"
exec 3<&0
setsid sh "$0" "$@" </dev/null & group=$!
{ cat <&3 >/dev/null; kill -s KILL -- "-$group"; } &
wait "$group""#;

/// Keycloak, running until dropped. Its realm has the client [`LOGIN_CLIENT`](super::LOGIN_CLIENT) and the user `ann` with the password
/// `any`; refresh tokens are used once.
#[derive(Debug)]
pub struct Keycloak {
    running: Running,
    address: SocketAddr,
    issuer: String,
    ca_file: PathBuf,
}

impl Drop for Keycloak {
    /// Java is gone when this returns.
    fn drop(&mut self) {
        self.running.close_input();
        self.running.status();
        while TcpStream::connect(self.address).is_ok() {
            std::thread::yield_now();
        }
    }
}

impl Keycloak {
    /// Starts it with a certificate of `ca`, and its files in `dir`. `None`, reported as skipped, if it is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(ca: &Ca, dir: &Path) -> Option<Self> {
        let program = tools::unpacked("keycloak", "keycloak/current/bin/kc.sh")?;
        let files = super::write_identity(ca, dir);
        let address = free_address();
        let flag = |name: &str, file: &Path| format!("--{name}={}", file.display());
        let running = Program::new("/bin/sh")
            .arguments(["-c".as_ref(), SCRIPT.as_ref(), program.as_os_str()])
            .arguments(["start", "--optimized", "--cache=local", "--import-realm", "--hostname-strict=false"])
            .arguments([format!("--http-host={}", address.ip()), format!("--https-port={}", address.port())])
            .arguments([
                flag("https-certificate-file", &files.certificate),
                flag("https-certificate-key-file", &files.key),
            ])
            .stdin("\n")
            .start_running()
            .expect("a shell starts");
        running.wait_for_output_within("Listening on:", START_LIMIT).await;
        let issuer = format!("https://{address}/realms/navicert");
        Some(Keycloak { running, address, issuer, ca_file: files.ca })
    }

    /// Its issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The certificate of its CA.
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }

    /// What it has printed.
    pub fn output(&self) -> String {
        self.running.output()
    }
}
