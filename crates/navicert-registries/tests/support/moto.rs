//! moto: somebody else's idea of AWS, as a server of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

/// A moto server on loopback.
pub(crate) struct Moto {
    child: Child,
    pub(crate) url: String,
}

impl Moto {
    /// Starts one; `None`, with one printed line, where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/moto/bin/moto_server");
        if !program.exists() {
            let _ =
                writeln!(std::io::stderr(), "moto not tested: it is not installed (scripts/install-tools)");
            return None;
        }
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
        // Somebody has to read on, or it waits for its own log.
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
