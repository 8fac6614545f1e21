//! Starts moto, an AWS mock server.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use navicert_testkit::cli::tools;

/// A moto server on loopback.
pub(crate) struct Moto {
    child: Child,
    pub(crate) url: String,
}

impl Moto {
    /// Starts a server; `None`, reported as skipped, if moto is not installed.
    pub(crate) fn start() -> Option<Self> {
        let program = tools::unpacked("moto", "moto/bin/moto_server")?;
        #[expect(clippy::disallowed_methods, reason = "a test starts a server of its own")]
        let mut command = std::process::Command::new(program);
        let mut child = command
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "moto did not start: {said}");
            if let Some((_, url)) = line.split_once("Running on ") {
                break url.trim().to_owned();
            }
            said.push_str(&line);
        };
        // Keeps draining its log; a full pipe would block the server.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Some(Moto { child, url })
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
