//! Real OpenID providers for tests: npm's certified `oidc-provider`, dex, and Keycloak. The first two issue ID tokens on demand, can be
//! told to sign with a new key, and may stand behind a [`FaultProxy`](crate::FaultProxy); all three take logins in a browser.

mod dex;
mod keycloak;
mod npm;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use crate::pki::ca::Ca;

pub use dex::Dex;
pub use keycloak::Keycloak;
pub use npm::NpmProvider;

/// The audience of the tokens.
pub const AUDIENCE: &str = "kubernetes";

/// The client id of logins: a public client that may redirect to any port of `http://127.0.0.1/callback`, and whose refresh tokens are
/// used once.
pub const LOGIN_CLIENT: &str = "kubernetes-login";

/// An address for a program that takes no port 0; the port was free a moment ago, and nothing else is given it so soon.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
    listener.local_addr().expect("a bound socket has an address")
}

/// The files of a server's certificate.
struct IdentityFiles {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// Writes a new certificate of `ca` for loopback into `dir`.
fn write_identity(ca: &Ca, dir: &Path) -> IdentityFiles {
    let identity = ca.server().issue();
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file of the provider");
        path
    };
    IdentityFiles {
        ca: write("ca.pem", &ca.pem()),
        certificate: write("certificate.pem", &identity.chain_pem()),
        key: write("key.pem", &identity.key_pem()),
    }
}
