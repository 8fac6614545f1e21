//! A registry with a password, and a home directory in which pullers find the helper and a provider.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use navicert_testkit::image_registry::User;
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
    folder: TempDir,
}

impl PullerHome {
    pub(crate) fn new(registry: &ImageRegistry, helper: &str) -> Self {
        let home = PullerHome { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(home.folder("bin")).unwrap();
        fs::create_dir(home.folder("run")).unwrap();
        fs::set_permissions(home.folder("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(home.folder("password"), PASSWORD).unwrap();
        let root = home.folder.path().display();
        let plugin = format!(
            "#!/bin/sh\ncat >/dev/null\necho run >> {root}/runs\nprintf '{{\"kind\":\"CredentialProviderResponse\",\
             \"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"cacheKeyType\":\"Registry\",\
             \"auth\":{{\"{}\":{{\"username\":\"ann\",\"password\":\"%s\"}}}}}}' \"$(cat {root}/password)\"\n",
            registry.host()
        );
        fs::write(home.folder("bin/static"), plugin).unwrap();
        fs::set_permissions(home.folder("bin/static"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(helper, home.folder("bin/docker-credential-navicert")).unwrap();
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: static\n  \
             matchImages: ['{}']\n  defaultCacheDuration: 10m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n",
            registry.host()
        );
        fs::write(home.folder("config.yaml"), config).unwrap();
        let auth = format!("{{\"credHelpers\":{{\"{}\":\"navicert\"}}}}", registry.host());
        fs::write(home.folder("auth.json"), auth).unwrap();
        home
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How many times the provider was run.
    pub(crate) fn runs(&self) -> usize {
        fs::read_to_string(self.folder("runs")).unwrap_or_default().lines().count()
    }

    pub(crate) fn helper(&self, verb: &str) -> Program {
        self.program(self.folder("bin/docker-credential-navicert").to_str().unwrap()).arguments([verb])
    }

    pub(crate) fn skopeo(&self, registry: &ImageRegistry) -> Program {
        let target = format!("dir:{}", self.folder("pulled").display());
        self.program("skopeo").arguments([
            "copy",
            "--src-tls-verify=false",
            &format!("docker://{}", registry.image()),
            &target,
        ])
    }

    pub(crate) fn podman(&self, registry: &ImageRegistry) -> Program {
        let (root, run) = (self.folder("podman"), self.folder("podman-run"));
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
            .variable("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.folder("bin").display()))
            .variable("HOME", self.folder.path())
            .variable("XDG_RUNTIME_DIR", self.folder("run"))
            .variable("REGISTRY_AUTH_FILE", self.folder("auth.json"))
            .variable("NAVICERT_IMAGE_CONFIG", self.folder("config.yaml"))
            .variable("NAVICERT_IMAGE_BIN_DIR", self.folder("bin"))
    }
}
