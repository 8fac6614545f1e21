//! `docker-credential-navicert get` with the daemon running, against a C program that prints the same bytes.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

use navicert_image::daemon::{Daemon, DaemonService};
use navicert_image::docker_helper::Scopes;
use navicert_image::metrics::TextMetrics;
use navicert_image::provider::ProviderSettings;
use navicert_image::reload::Reloader;
use navicert_plugin::{Environment, ProcessRunner};
use navicert_types::SystemClock;

use crate::needs::{self, Need};
use crate::race::{Contest, Fault, Race};

const HELPER: &str = "docker-credential-navicert";
const ANSWER: &str = r#"{"ServerURL":"registry-0.example","Username":"user","Secret":"password"}"#;

pub(super) fn race() -> Race {
    let what = "image: helper get with a daemon / C program printing the same";
    Race::new(what, 1.5, contest).needs(&[Need::Installed("cc"), Need::Built(HELPER)])
}

fn contest() -> Result<Contest, Fault> {
    let dir = ProviderDir::new("helper")?;
    let printer = c_program(&dir)?;
    let socket = serve(&dir)?;
    let request = dir.path().join("request");
    fs::write(&request, "registry-0.example")?;
    let dir = Arc::new(dir);
    let ours = contestant(needs::built(HELPER)?, Some(socket), request.clone(), Arc::clone(&dir));
    Ok(Contest::time(ours, contestant(printer, None, request, dir)))
}

fn contestant(
    program: PathBuf,
    socket: Option<PathBuf>,
    request: PathBuf,
    dir: Arc<ProviderDir>,
) -> impl FnMut() -> Result<(), Fault> {
    move || {
        let _kept = &dir;
        #[expect(
            clippy::disallowed_methods,
            reason = "the race is about starting a program, with nothing of ours around it"
        )]
        let mut command = std::process::Command::new(&program);
        command
            .arg("get")
            .env_clear()
            .stdin(fs::File::open(&request)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(socket) = &socket {
            command.env("NAVICERT_IMAGE_SOCKET", socket);
        }
        let mut child = command.spawn()?;
        let mut printed = Vec::with_capacity(256);
        child.stdout.take().ok_or("no stdout")?.read_to_end(&mut printed)?;
        let status = child.wait()?;
        if status.success() && printed.trim_ascii() == ANSWER.as_bytes() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&printed).into())
        }
    }
}

/// A dynamically linked program that reads its input and prints the answer.
fn c_program(dir: &ProviderDir) -> Result<PathBuf, Fault> {
    let (source, program) = (dir.path().join("print.c"), dir.path().join("print"));
    let escaped = ANSWER.replace('"', "\\\"");
    fs::write(
        &source,
        format!(
            "#include <stdio.h>\nint main(void){{char b[256];if(!fgets(b,256,stdin))return 1;puts(\"{escaped}\");return 0;}}\n"
        ),
    )?;
    needs::compile_c(&["-O2"], &source, &program)?;
    Ok(program)
}

fn serve(dir: &ProviderDir) -> Result<PathBuf, Fault> {
    dir.provider("answer", "registry-0.example")?;
    let config = dir.path().join("config.yaml");
    fs::write(
        &config,
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n\
         - {name: answer, matchImages: [registry-0.example], defaultCacheDuration: 10h, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n",
    )?;
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let settings = ProviderSettings::new(dir.path(), environment, runner, Arc::clone(&clock) as _);
    let service = DaemonService::new(
        Reloader::open(&config, settings)?,
        Scopes::new(),
        Arc::new(TextMetrics::new()),
        clock,
    );
    let socket = dir.path().join("run/image.sock");
    let daemon = Daemon::bind(&socket, service)?;
    thread::spawn(move || daemon.run());
    Ok(socket)
}

/// A directory under the system's temporary one, gone when dropped.
pub(super) struct ProviderDir(PathBuf);

impl ProviderDir {
    pub(super) fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("navicert-bench-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(ProviderDir(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A provider plugin that answers with one user.
    pub(super) fn provider(&self, name: &str, key: &str) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.join(name);
        let text = format!(
            "#!/bin/sh\ncat >/dev/null\necho '{{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\
             \"cacheKeyType\":\"Registry\",\"auth\":{{\"{key}\":{{\"username\":\"user\",\"password\":\"password\"}}}}}}'\n"
        );
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    }
}

impl Drop for ProviderDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
