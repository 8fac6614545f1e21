//! A registry with a password, and a home directory in which pullers find the helper and a provider.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use navicert_testkit::services::image_registry::User;
use navicert_testkit::{ImageRegistry, Program};
use tempfile::TempDir;

pub(crate) const PASSWORD: &str = "secretpw";

/// The bcrypt hash of the test password.
const HASH: &str = "$2y$05$e5h9jbEeCLVsaO.rmZQS3eYp2nbLNmcMYe/XDTcXfKFMCELCEQf1y";

/// Starts a docker-registry on loopback for user `ann`; returns `None` and reports a skip if the tools are missing.
pub(crate) fn registry() -> Option<ImageRegistry> {
    ImageRegistry::start(User { name: "ann", password: PASSWORD, hash: HASH })
}

/// A puller's home directory: configuration, provider, helper on `PATH`, runtime directory.
pub(crate) struct PullerHome {
    dir: TempDir,
}

impl PullerHome {
    pub(crate) fn new(registry: &ImageRegistry, helper: &str) -> Self {
        let home = PullerHome { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(home.dir("bin")).unwrap();
        fs::create_dir(home.dir("run")).unwrap();
        fs::set_permissions(home.dir("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(home.dir("password"), PASSWORD).unwrap();
        let root = home.dir.path().display();
        let plugin = format!(
            "#!/bin/sh\ncat >/dev/null\necho run >> {root}/runs\nprintf '{{\"kind\":\"CredentialProviderResponse\",\
             \"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"cacheKeyType\":\"Registry\",\
             \"auth\":{{\"{}\":{{\"username\":\"ann\",\"password\":\"%s\"}}}}}}' \"$(cat {root}/password)\"\n",
            registry.host()
        );
        fs::write(home.dir("bin/static"), plugin).unwrap();
        fs::set_permissions(home.dir("bin/static"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(helper, home.dir("bin/docker-credential-navicert")).unwrap();
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: static\n  \
             matchImages: ['{}']\n  defaultCacheDuration: 10m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n",
            registry.host()
        );
        fs::write(home.dir("config.yaml"), config).unwrap();
        let auth = format!("{{\"credHelpers\":{{\"{}\":\"navicert\"}}}}", registry.host());
        fs::write(home.dir("auth.json"), auth).unwrap();
        home
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// How many times the provider was run.
    pub(crate) fn runs(&self) -> usize {
        fs::read_to_string(self.dir("runs")).unwrap_or_default().lines().count()
    }

    pub(crate) fn helper(&self, verb: &str) -> Program {
        self.program(self.dir("bin/docker-credential-navicert").to_str().unwrap()).arguments([verb])
    }

    pub(crate) fn skopeo(&self, registry: &ImageRegistry) -> Program {
        let target = format!("dir:{}", self.dir("pulled").display());
        self.program("skopeo").arguments([
            "copy",
            "--src-tls-verify=false",
            &format!("docker://{}", registry.image()),
            &target,
        ])
    }

    pub(crate) fn podman(&self, registry: &ImageRegistry) -> Program {
        let (root, run) = (self.dir("podman"), self.dir("podman-run"));
        self.program("podman")
            .arguments([
                "--storage-driver",
                "vfs",
                "--root",
                root.to_str().unwrap(),
                "--runroot",
                run.to_str().unwrap(),
            ])
            .arguments(["pull", "--tls-verify=false", &registry.image()])
    }

    fn program(&self, name: &str) -> Program {
        Program::new(name)
            .variable("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.dir("bin").display()))
            .variable("HOME", self.dir.path())
            .variable("XDG_RUNTIME_DIR", self.dir("run"))
            .variable("REGISTRY_AUTH_FILE", self.dir("auth.json"))
            .variable("NAVICERT_IMAGE_CONFIG", self.dir("config.yaml"))
            .variable("NAVICERT_IMAGE_BIN_DIR", self.dir("bin"))
    }
}
