//! An exec credential plugin controlled by the test: a small script that fetches its output from a server in the test
//! process, which records every run.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use navicert_types::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

use crate::platform;

/// Server side of a fake exec plugin; records the time of every run. When it is dropped, its plugins fail.
///
/// ```
/// use navicert_testkit::{FakeExecPlugin, Program};
/// use serde_json::json;
///
/// let dir = tempfile::tempdir().unwrap();
/// let fake = FakeExecPlugin::start(|run| json!({"token": format!("token-{run}")}));
/// let plugin = fake.write_plugin(dir.path());
/// let outcome = Program::new(&plugin).run().unwrap();
/// assert!(String::from_utf8_lossy(&outcome.stdout).contains("token-1"));
/// assert_eq!(fake.runs().len(), 1);
/// ```
#[derive(Debug)]
pub struct FakeExecPlugin {
    address: SocketAddr,
    runs: Arc<Mutex<Vec<Timestamp>>>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeExecPlugin {
    /// Starts the server. `status` returns the `status` object for the run of this number, counted from 1; with null the
    /// plugin prints nothing.
    ///
    /// # Panics
    /// If there is no free port on loopback.
    pub fn start(status: impl FnMut(usize) -> Value + Send + 'static) -> Self {
        FakeExecPlugin::start_in("client.authentication.k8s.io/v1", status)
    }

    /// Starts the server for another version of `ExecCredential`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_in(
        api_version: &'static str,
        mut status: impl FnMut(usize) -> Value + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        let address = listener.local_addr().expect("the address of our own socket");
        let (runs, closing) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (record, is_closing) = (Arc::clone(&runs), Arc::clone(&closing));
        let serve = move || {
            for caller in listener.incoming() {
                if is_closing.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(mut caller) = caller else { continue };
                let run = {
                    let mut runs = record.lock().unwrap_or_else(PoisonError::into_inner);
                    runs.push(SystemClock.now());
                    runs.len()
                };
                let status = status(run);
                if !status.is_null() {
                    let answer =
                        json!({"kind": "ExecCredential", "apiVersion": api_version, "status": status});
                    // Fails if the plugin was killed in the meantime.
                    let _ = caller.write_all(answer.to_string().as_bytes());
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("fake exec plugin".into()).spawn(serve).expect("a thread");
        FakeExecPlugin { address, runs, closing, thread: Some(thread) }
    }

    /// Writes the plugin script into a directory and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_plugin(&self, dir: &Path) -> PathBuf {
        let path = dir.join("plugin");
        let (host, port) = (self.address.ip(), self.address.port());
        fs::write(&path, format!("#!/bin/bash\nexec cat < /dev/tcp/{host}/{port}\n"))
            .expect("to write a plugin");
        platform::set_mode(&path, 0o755).expect("to make it executable");
        path
    }

    /// Times of all runs so far.
    pub fn runs(&self) -> Vec<Timestamp> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeExecPlugin {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
