//! Runs the user's command in the foreground: it uses the terminal, receives signals, and its exit status becomes this
//! process's. For `navicert run`; plugins use [`Runner`](crate::Runner).
//!
//! The child stays in this process group, as with `env` or `nice`: the terminal sends Ctrl-C, Ctrl-\, Ctrl-Z and window
//! size changes to it directly, and job control stops and continues both processes. Signals sent to this process only
//! (`kill`) are forwarded.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::command::{Command, ProcessGroup, Stderr, Stdin};
use crate::error::RunError;
use crate::platform::{self, SignalTarget};
use crate::policy::Permitted;
use crate::process::{start, start_with_streams};
use crate::runner::Exit;

/// Signals forwarded to the child.
const FORWARDED_SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// Forwarded signals that the terminal sends to the whole process group, including the child.
const KEYBOARD_SIGNALS: [i32; 2] = [SIGINT, SIGQUIT];

/// Runs a command to its end with this process's standard streams; calls `started` as soon as it runs.
///
/// From then on the forwarded signals no longer end this process. Signals that were ignored at start stay ignored, in the
/// child too.
///
/// # Errors
/// The command could not be started, or its exit status is unavailable.
pub fn run(command: Permitted<Command>, started: impl FnOnce()) -> Result<Exit, RunError> {
    let (command, program) = command.into_parts();
    let command = command.stdin(Stdin::Inherit).stderr(Stderr::Inherit).process_group(ProcessGroup::Inherit);
    let path = program.path.clone();
    let io_error = |source| RunError::Io { program: path.clone(), source: Arc::new(source) };
    // Register before starting the child, so that no signal is lost.
    let ignored = platform::ignored_signals();
    let forwarded = FORWARDED_SIGNALS.into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(forwarded).map_err(io_error)?;
    let mut child = start(&command, &program, Stdio::inherit())?;
    let recipient = SignalTarget::from_child(&child);
    let handle = signals.handle();
    let forwarder = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if !(KEYBOARD_SIGNALS.contains(&signal) && platform::is_foreground()) {
                recipient.send(signal);
            }
        }
    });
    started();
    let ended = child.wait();
    handle.close();
    if let Ok(thread) = forwarder {
        let _ = thread.join();
    }
    ended
        .map(platform::exit_from_status)
        .map_err(|source| RunError::StatusLost { program: path.clone(), source: Arc::new(source) })
}

/// Starts a command that outlives this process, without terminal or output, in its own process group.
///
/// # Errors
/// The command could not be started.
pub fn spawn_detached(command: Permitted<Command>) -> Result<(), RunError> {
    // The child is not reaped, so it may remain a zombie until this process ends, which it waits for.
    start_detached(command).map(|_| ())
}

/// Starts a command as [`spawn_detached`] does, and waits up to `grace` for its end: a program that only passes a request on
/// (to a browser that runs already) ends at once and says whether that worked. `None` if it is still running; it is then left
/// to itself.
///
/// # Errors
/// The command could not be started, or its exit status is unavailable.
pub fn leave_behind(command: Permitted<Command>, grace: Duration) -> Result<Option<Exit>, RunError> {
    let path = command.program().to_path_buf();
    let mut child = start_detached(command)?;
    let (sender, ended) = mpsc::channel();
    // The thread reaps the child whenever it ends. Without a thread the child is left to itself from the start.
    let reaper = thread::Builder::new().name("reaper".to_owned());
    let reaper = reaper.spawn(move || sender.send(child.wait()));
    match reaper.ok().and_then(|_| ended.recv_timeout(grace).ok()) {
        None => Ok(None),
        Some(Ok(status)) => Ok(Some(platform::exit_from_status(status))),
        Some(Err(source)) => Err(RunError::StatusLost { program: path, source: Arc::new(source) }),
    }
}

/// Starts a command that outlives this process and has this descriptor, such as a listening socket, as standard input. It
/// has no output and stays in this process group, so that it can start a session of its own.
///
/// # Errors
/// The command could not be started.
pub fn spawn_server(command: Permitted<Command>, stdin: OwnedFd) -> Result<(), RunError> {
    let (command, program) = command.into_parts();
    let command = command.stderr(Stderr::Null).process_group(ProcessGroup::Inherit);
    // Not reaped, as in `spawn_detached`.
    start_with_streams(&command, &program, stdin.into(), Stdio::null()).map(|_| ())
}

fn start_detached(command: Permitted<Command>) -> Result<Child, RunError> {
    let (command, program) = command.into_parts();
    let command = command.stdin(Stdin::Null).stderr(Stderr::Null).process_group(ProcessGroup::New);
    start(&command, &program, Stdio::null())
}

/// Ends this process with the signal that ended the child, so that a shell sees the same status: a loop stops after
/// Ctrl-C. Returns only on failure.
///
/// # Errors
/// The signal does not end the process.
pub fn exit_by_signal(signal: i32) -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal)
}

/// Makes this process survive Ctrl-C and Ctrl-\, for a program that stays while another one uses the terminal. Programs
/// that it starts are not affected.
///
/// # Errors
/// The signals cannot be registered.
pub fn survive_keyboard_signals() -> io::Result<()> {
    for signal in KEYBOARD_SIGNALS {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Catches the termination signals SIGHUP, SIGINT and SIGTERM while it exists.
#[derive(Debug)]
pub struct TerminationSignals(Signals);

impl TerminationSignals {
    /// Registers the signals, except those that were ignored at start.
    ///
    /// # Errors
    /// The signals cannot be registered.
    pub fn register() -> io::Result<Self> {
        let ignored = platform::ignored_signals();
        let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !ignored.contains(signal));
        Signals::new(wanted).map(TerminationSignals)
    }

    /// Waits for the first signal.
    pub fn wait(mut self) {
        self.0.forever().next();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::net::TcpListener;

    use super::*;
    use crate::command::Environment;
    use crate::policy::Policy;

    fn shell(script: &str) -> Permitted<Command> {
        let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        Policy::AllowAll.permit(Command::new("/bin/sh", environment).args(["-c", script])).unwrap()
    }

    #[test]
    fn short_program_reports_how_it_ended() {
        let ended = |script| leave_behind(shell(script), Duration::from_secs(60)).unwrap();
        assert_eq!(ended("exit 0"), Some(Exit::Code(0)));
        assert_eq!(ended("exit 3"), Some(Exit::Code(3)));
        assert_eq!(ended("kill -9 $$"), Some(Exit::Signal(9)));
        // A closed pipe in place of the null device would end it.
        assert_eq!(ended("echo text && echo text >&2 && ! read line"), Some(Exit::Code(0)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn program_left_behind_has_no_stream_and_no_descriptor_of_ours() {
        let directory = tempfile::tempdir().unwrap();
        let (lock, fifo) = (directory.path().join("lock"), directory.path().join("fifo"));
        let _lock = File::create(&lock).unwrap();
        let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let script = format!("echo $$ >{}; exec sleep 600", fifo.display());
        assert_eq!(leave_behind(shell(&script), Duration::ZERO).unwrap(), None);
        let pid: i32 = fs::read_to_string(&fifo).unwrap().trim().parse().unwrap();
        let links = |process: &str| -> Vec<(String, String)> {
            let entries = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
            let read = |entry: fs::DirEntry| Some((entry.file_name(), fs::read_link(entry.path()).ok()?));
            let text = |(name, link): (std::ffi::OsString, std::path::PathBuf)| {
                (name.into_string().unwrap(), link.display().to_string())
            };
            entries.filter_map(read).map(text).collect()
        };
        let (own, left) = (links("self"), links(&pid.to_string()));
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let group = rustix::process::getpgid(Some(pid)).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(group, pid, "its own process group");
        for stream in ["0", "1", "2"] {
            assert!(left.contains(&(stream.to_owned(), "/dev/null".to_owned())), "{left:?}");
        }
        let ours: Vec<_> =
            own.iter().filter(|(_, link)| link.contains("lock") || link.starts_with("socket:")).collect();
        assert!(ours.len() >= 2, "{own:?}");
        for (_, link) in ours {
            assert!(left.iter().all(|(_, other)| other != link), "{link}: {left:?}");
        }
    }
}
