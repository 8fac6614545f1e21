//! Every verb that listens ends with the same exit code and names the address if it is in use. `run` and `gateway` select a
//! free port; `signer serve` is tested with its devices (tests/signer.rs).

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use navicert_testkit::{Ca, Program};

/// A directory with the files of every server.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let ca = Ca::new("in use");
    ca.server().issue().write_to(dir.path(), "server");
    for (name, content) in [
        (
            "authentication.yaml",
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: \
             'https://127.0.0.1:1', audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: 'x:'}}\n",
        ),
        (
            "config",
            "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\n\
             contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
        ),
        (
            "providers.yaml",
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  \
             matchImages: [registry.example]\n  defaultCacheDuration: 10m\n  \
             apiVersion: credentialprovider.kubelet.k8s.io/v1\n",
        ),
        ("plugin", "#!/bin/sh\n"),
    ] {
        fs::write(dir.path().join(name), content).unwrap();
    }
    fs::set_permissions(dir.path().join("plugin"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

/// Runs the verb and returns its exit code and standard error.
fn navicert(dir: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let outcome = Program::new(env!("CARGO_BIN_EXE_navicert"))
        .arguments(arguments)
        .own_environment()
        .variable("HOME", dir.path())
        .directory(dir.path())
        .run()
        .unwrap();
    (outcome.code(), String::from_utf8_lossy(&outcome.stderr).into_owned())
}

#[test]
fn ports_in_use_have_one_exit_code() {
    const TLS: [&str; 4] = ["--tls-cert-file", "server.crt", "--tls-private-key-file", "server.key"];
    let (dir, taken) = (directory(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let webhook =
        ["serve", "webhook", "--authentication-config", "authentication.yaml", "--allow-any-caller"];
    let proxy =
        ["serve", "proxy", "--authentication-config", "authentication.yaml", "--kubeconfig", "config"];
    for verb in [&webhook[..], &proxy[..]] {
        for listeners in [
            ["--listen", &address, "--health-listen", "127.0.0.1:0"],
            ["--listen", "127.0.0.1:0", "--health-listen", &address],
        ] {
            let (code, stderr) = navicert(&dir, &[verb, &TLS, &listeners].concat());
            let expected = format!("failed to listen on {address}: Address already in use");
            assert!(code == Some(1) && stderr.contains(&expected), "{verb:?}: {code:?}: {stderr}");
        }
    }
}

#[test]
fn sockets_in_use_have_the_same_exit_code() {
    let dir = directory();
    let path = dir.path().join("image.sock");
    let _taken = UnixListener::bind(&path).unwrap();
    let (code, stderr) = navicert(
        &dir,
        &[
            "image",
            "serve",
            "--config",
            "providers.yaml",
            "--bin-dir",
            ".",
            "--socket",
            path.to_str().unwrap(),
        ],
    );
    let expected = format!("a daemon is already listening on `{}`", path.display());
    assert!(code == Some(1) && stderr.contains(&expected), "{code:?}: {stderr}");
}
