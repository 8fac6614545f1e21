//! A directory with a provider in service-account mode. The provider keeps what it was asked, and answers with a user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Fixture {
    dir: TempDir,
}

impl Fixture {
    pub(crate) fn new(token_attributes: &str) -> Self {
        let fixture = Fixture { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.path("bin")).unwrap();
        fs::create_dir(fixture.path("run")).unwrap();
        fs::set_permissions(fixture.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        let request = fixture.path("request");
        let plugin = format!(
            "#!/bin/sh\ncat > {}\necho '{{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\
             \"cacheKeyType\":\"Registry\",\"auth\":{{\"registry.example\":{{\"username\":\"ann\",\"password\":\"canary\"}}}}}}'\n",
            request.display()
        );
        fs::write(fixture.path("bin/workload"), plugin).unwrap();
        fs::set_permissions(fixture.path("bin/workload"), fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: workload\n  \
             matchImages: [registry.example]\n  defaultCacheDuration: 10m\n  \
             apiVersion: credentialprovider.kubelet.k8s.io/v1\n  tokenAttributes: {token_attributes}\n"
        );
        fs::write(fixture.path("config.yaml"), config).unwrap();
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the provider was asked last; nothing if it was not run.
    pub(crate) fn request(&self) -> Option<Value> {
        let text = fs::read(self.path("request")).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// `navicert image VERB registry.example/app …` with this directory's configuration and kubeconfig.
    pub(crate) fn ask(&self, verb: &str, arguments: &[&str]) -> Outcome {
        Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(["image", verb, "registry.example/app", "--config", "config.yaml", "--bin-dir", "bin"])
            .arguments(["--kubeconfig", "kubeconfig"])
            .arguments(arguments)
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.dir.path())
            .directory(self.dir.path())
            .run()
            .unwrap()
    }
}
