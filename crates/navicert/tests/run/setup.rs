//! A directory with a kubeconfig whose user has a client certificate, an API server that demands one, and navicert.

use std::fs;
use std::path::{Path, PathBuf};

use navicert_testkit::cli::tools;
use navicert_testkit::{ApiServer, Ca, ClientAuth, Identity, Kubeconfig, Program};
use serde_json::Value;

pub(crate) struct Setup {
    pub(crate) api: ApiServer,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) ann: Identity,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Setup::with_client_auth(ClientAuth::Requested)
    }

    pub(crate) fn with_client_auth(client_auth: ClientAuth) -> Self {
        let ca = Ca::new("run");
        let api = ApiServer::start_with(&ca, |server| server.client_auth(client_auth));
        let ann = ca.client("ann").organization("developers").issue();
        let dir = tempfile::tempdir().unwrap();
        let files = ann.write_to(dir.path(), "ann");
        Kubeconfig::new(api.url())
            .names("prod", "north", "ann")
            .namespace("default")
            .ca(&ca)
            .certificate(files.certificate, files.key)
            .write(dir.path().join("config"));
        fs::create_dir(dir.path().join("runtime")).unwrap();
        set_mode(&dir.path().join("runtime"), 0o700);
        Setup { api, dir, ann }
    }

    /// navicert with its own environment and this directory as its home.
    pub(crate) fn navicert(&self, arguments: &[&str]) -> Program {
        Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(arguments)
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.dir.path())
            .variable("KUBECONFIG", self.dir.path().join("config"))
            .variable("XDG_RUNTIME_DIR", self.dir.path().join("runtime"))
            .directory(self.dir.path())
    }

    /// `navicert run [flags] -- kubectl …`
    pub(crate) fn kubectl(&self, flags: &[&str], arguments: &[&str]) -> Program {
        let kubectl = kubectl();
        let command = [&["run"], flags, &["--", kubectl.to_str().unwrap()], arguments].concat();
        self.navicert(&command)
    }

    /// `navicert run -- sh -c …`
    pub(crate) fn shell(&self, script: &str) -> Program {
        self.navicert(&["run", "--", "/bin/sh", "-c", script])
    }

    /// Changes the kubeconfig.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Value)) {
        let path = self.dir.path().join("config");
        let mut config = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut config);
        fs::write(path, config.to_string()).unwrap();
    }

    /// What gateways have left in the runtime dir.
    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join("runtime/navicert")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Every request came with ann's certificate and without any token.
    pub(crate) fn assert_all_as_ann(&self) {
        let requests = self.api.requests();
        assert!(!requests.is_empty());
        for request in requests {
            let client = request.client.as_ref().map(|client| client.common_name.as_str());
            assert_eq!(client, Some("ann"), "{}", request.target);
            assert_eq!(request.header("authorization"), None, "{}", request.target);
        }
    }
}

pub(crate) fn kubectl() -> PathBuf {
    tools::kubectl().unwrap()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
