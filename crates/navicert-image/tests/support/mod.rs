//! A registry with a password, and a folder in which pullers find the helper and a provider.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use navicert_testkit::Program;
use tempfile::TempDir;

pub(crate) const PASSWORD: &str = "secretpw";

/// `ann:secretpw`, hashed: a throw-away test password.
const HTPASSWD: &str = "ann:$2y$05$e5h9jbEeCLVsaO.rmZQS3eYp2nbLNmcMYe/XDTcXfKFMCELCEQf1y\n";

/// A docker-registry on loopback that lets only ann in.
pub(crate) struct Registry {
    child: Child,
    host: String,
    _folder: TempDir,
}

impl Registry {
    /// Starts one; `None`, with one printed line, where the tools are missing.
    pub(crate) fn start() -> Option<Self> {
        let missing: Vec<&str> =
            ["docker-registry", "skopeo", "podman"].into_iter().filter(|tool| !is_installed(tool)).collect();
        if !missing.is_empty() {
            let line = format!(
                "image pullers not tested: {} not installed (scripts/install-tools)\n",
                missing.join(", ")
            );
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("htpasswd"), HTPASSWD).unwrap();
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:0'}}\nauth: {{htpasswd: {{realm: test, path: {}}}}}\n",
            path("data").display(),
            path("htpasswd").display()
        );
        fs::write(path("config.yml"), config).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test starts a registry of its own")]
        let mut command = std::process::Command::new("docker-registry");
        let mut child = command
            .arg("serve")
            .arg(path("config.yml"))
            .env_remove("REGISTRY_AUTH_FILE")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let host = loop {
            let mut line = String::new();
            if log.read_line(&mut line).unwrap() == 0 {
                panic!("docker-registry did not start: {said}");
            }
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.split(['"', ' ', '\n']).next().unwrap().to_owned();
            }
            said.push_str(&line);
        };
        // Somebody has to read on, or the registry waits for its own log.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Some(Registry { child, host, _folder: folder })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn image(&self) -> String {
        format!("{}/team/app:latest", self.host)
    }

    /// Puts a small image there, with the password on the command line: this is set-up, not the test.
    pub(crate) fn push_image(&self, place: &Place) {
        let layout = place.folder("layout");
        write_layout(&layout);
        let outcome = Program::new("skopeo")
            .arguments(["copy", "--dest-tls-verify=false", "--dest-creds"])
            .arguments([
                format!("ann:{PASSWORD}"),
                format!("oci:{}:latest", layout.display()),
                format!("docker://{}", self.image()),
            ])
            .run()
            .unwrap();
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a puller looks: configuration, provider, helper on `PATH`, runtime folder.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new(registry: &Registry, helper: &str) -> Self {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.folder("bin")).unwrap();
        fs::create_dir(place.folder("run")).unwrap();
        fs::set_permissions(place.folder("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(place.folder("password"), PASSWORD).unwrap();
        let root = place.folder.path().display();
        let plugin = format!(
            "#!/bin/sh\ncat >/dev/null\necho run >> {root}/runs\nprintf '{{\"kind\":\"CredentialProviderResponse\",\
             \"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"cacheKeyType\":\"Registry\",\
             \"auth\":{{\"{}\":{{\"username\":\"ann\",\"password\":\"%s\"}}}}}}' \"$(cat {root}/password)\"\n",
            registry.host
        );
        fs::write(place.folder("bin/static"), plugin).unwrap();
        fs::set_permissions(place.folder("bin/static"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(helper, place.folder("bin/docker-credential-navicert")).unwrap();
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: static\n  \
             matchImages: ['{}']\n  defaultCacheDuration: 10m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n",
            registry.host
        );
        fs::write(place.folder("config.yaml"), config).unwrap();
        let auth = format!("{{\"credHelpers\":{{\"{}\":\"navicert\"}}}}", registry.host);
        fs::write(place.folder("auth.json"), auth).unwrap();
        place
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How often the provider was run.
    pub(crate) fn runs(&self) -> usize {
        fs::read_to_string(self.folder("runs")).unwrap_or_default().lines().count()
    }

    pub(crate) fn helper(&self, verb: &str) -> Program {
        self.program(self.folder("bin/docker-credential-navicert").to_str().unwrap()).arguments([verb])
    }

    pub(crate) fn skopeo(&self, registry: &Registry) -> Program {
        let target = format!("dir:{}", self.folder("pulled").display());
        self.program("skopeo").arguments([
            "copy",
            "--src-tls-verify=false",
            &format!("docker://{}", registry.image()),
            &target,
        ])
    }

    pub(crate) fn podman(&self, registry: &Registry) -> Program {
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

fn is_installed(tool: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(tool).exists())
}

/// An image of one small layer, made by hand in the OCI layout.
fn write_layout(folder: &Path) {
    use sha2::{Digest as _, Sha256};
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8]| {
        let digest = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        fs::write(blobs.join(&digest), bytes).unwrap();
        serde_json::json!({"digest": format!("sha256:{digest}"), "size": bytes.len()})
    };
    // An empty tar archive: two blocks of zeros.
    let mut layer = put(&[0; 1024]);
    let config = serde_json::json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let mut config = put(config.to_string().as_bytes());
    layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar".into();
    config["mediaType"] = "application/vnd.oci.image.config.v1+json".into();
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        serde_json::json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
    let mut manifest = put(manifest.to_string().as_bytes());
    manifest["mediaType"] = media_type.into();
    manifest["annotations"] = serde_json::json!({"org.opencontainers.image.ref.name": "latest"});
    fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    fs::write(
        folder.join("index.json"),
        serde_json::json!({"schemaVersion": 2, "manifests": [manifest]}).to_string(),
    )
    .unwrap();
}
