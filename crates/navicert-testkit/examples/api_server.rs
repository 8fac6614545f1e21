//! A stand-in for a cluster, for the quick starts in docs/: an API server on loopback that knows one user.
//!
//! `cargo run -p navicert-testkit --example api_server -- DIRECTORY` makes the directory, writes a kubeconfig and the server's
//! certificate authority into it, and serves until it is ended.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "says when it is ready, or why not")]

use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use navicert_testkit::{ApiServer, Ca, Kubeconfig};

/// It opens nothing but this server.
const TOKEN: &str = "stand-in-token-of-ann";

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("error: missing DIRECTORY for the kubeconfig");
        return ExitCode::from(2);
    };
    let ca = Ca::new("stand-in cluster");
    let api = ApiServer::start(&ca);
    api.accept_token(TOKEN, "ann", &["developers", "system:authenticated"]);
    if let Err(error) = write_files(&dir, &ca, &api.url()) {
        eprintln!("error: failed to write {}: {error}; name a new directory", dir.display());
        return ExitCode::FAILURE;
    }
    println!("ready: {} (Ctrl-C ends it)", dir.join("config").display());
    loop {
        std::thread::park();
    }
}

/// Only into a new directory, so that no kubeconfig of the reader's is overwritten.
fn write_files(dir: &Path, ca: &Ca, url: &str) -> Result<(), Error> {
    fs::create_dir(dir)?;
    let config = Kubeconfig::new(url).names("prod", "east", "ann").ca_file("ca.crt").token(TOKEN);
    fs::write(dir.join("ca.crt"), ca.pem())?;
    fs::write(dir.join("config"), format!("{config:#}\n"))
}
