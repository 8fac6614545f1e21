//! A real docker-registry on loopback that lets one user in, with a small image in it: for pullers that find their
//! password themselves.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use aws_lc_rs::digest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::program::Program;
use crate::cli::tools;

/// A docker-registry process that requires a password. Dropping it ends the process.
#[derive(Debug)]
pub struct ImageRegistry {
    child: Child,
    host: String,
    user: User,
    dir: TempDir,
}

/// The registry's user. The password is only used in tests; its bcrypt hash is given because the kit cannot compute one.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// The name.
    pub name: &'static str,
    /// The password.
    pub password: &'static str,
    /// The password's bcrypt hash, as `htpasswd -nB` prints it.
    pub hash: &'static str,
}

impl ImageRegistry {
    /// Starts one with an image in it; `None`, reported as skipped, if a tool is not installed.
    ///
    /// # Panics
    /// If the tools are installed and it does not start, or if nothing may be skipped.
    pub fn start(user: User) -> Option<Self> {
        let needed = ["docker-registry", "skopeo", "podman"];
        if needed.iter().filter(|tool| tools::installed(tool, tool).is_none()).count() > 0 {
            return None;
        }
        let registry = ImageRegistry::serve(user);
        registry.push();
        Some(registry)
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The name of the image in it.
    pub fn image(&self) -> String {
        format!("{}/team/app:latest", self.host)
    }

    fn serve(user: User) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| dir.path().join(name);
        fs::write(path("htpasswd"), format!("{}:{}\n", user.name, user.hash)).expect("to write htpasswd");
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:0'}}\nauth: {{htpasswd: {{realm: test, path: {}}}}}\n",
            path("data").display(),
            path("htpasswd").display()
        );
        fs::write(path("config.yml"), config).expect("to write the registry's configuration");
        #[expect(clippy::disallowed_methods, reason = "a test starts a registry of its own")]
        let mut command = std::process::Command::new("docker-registry");
        let mut child = command
            .arg("serve")
            .arg(path("config.yml"))
            .env_remove("REGISTRY_AUTH_FILE")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("to start docker-registry");
        let mut log = BufReader::new(child.stderr.take().expect("a piped stream"));
        let mut said = String::new();
        let host = loop {
            let mut line = String::new();
            let read = log.read_line(&mut line).expect("to read the registry's log");
            assert_ne!(read, 0, "docker-registry did not start: {said}");
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.split(['"', ' ', '\n']).next().unwrap_or_default().to_owned();
            }
            said.push_str(&line);
        };
        // Keep reading, or the registry blocks on its full log pipe.
        std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        ImageRegistry { child, host, user, dir }
    }

    /// Puts a small image there, with the password on the command line: this is set-up, not the test.
    fn push(&self) {
        let layout = self.dir.path().join("layout");
        write_layout(&layout).expect("to write an image");
        let outcome = Program::new("skopeo")
            .arguments(["copy", "--dest-tls-verify=false", "--dest-creds"])
            .arguments([
                format!("{}:{}", self.user.name, self.user.password),
                format!("oci:{}:latest", layout.display()),
                format!("docker://{}", self.image()),
            ])
            .run()
            .expect("to run skopeo");
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
}

impl Drop for ImageRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An image of one small layer, made by hand in the OCI layout.
fn write_layout(dir: &Path) -> io::Result<()> {
    let blobs = dir.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let put = |bytes: &[u8]| -> io::Result<Value> {
        let digest = digest::digest(&digest::SHA256, bytes);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(blobs.join(&digest), bytes)?;
        Ok(json!({"digest": format!("sha256:{digest}"), "size": bytes.len()}))
    };
    // An empty tar archive: two blocks of zeros.
    let mut layer = put(&[0; 1024])?;
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let mut config = put(config.to_string().as_bytes())?;
    layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar".into();
    config["mediaType"] = "application/vnd.oci.image.config.v1+json".into();
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
    let mut manifest = put(manifest.to_string().as_bytes())?;
    manifest["mediaType"] = media_type.into();
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
    fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    fs::write(dir.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())
}
