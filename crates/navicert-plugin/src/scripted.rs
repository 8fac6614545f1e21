//! A fake [`Runner`] for tests. It starts no process, returns scripted results in order, records the commands, and can
//! block in a run.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::Secret;

use crate::command::{Command, Stderr};
use crate::error::RunError;
use crate::policy::Permitted;
use crate::runner::{Completed, Exit, Runner, StderrTail};

/// Returns scripted results in order, one per run. Commands must be permitted as usual, so they name an existing program
/// such as `/bin/sh`; it is not started.
///
/// ```
/// use navicert_plugin::{Command, Environment, Policy, Runner, Script, ScriptedRunner};
///
/// let runner = ScriptedRunner::new([Script::prints("token-1"), Script::exits(3).stderr("no network")]);
/// let command = || Policy::AllowAll.permit(Command::new("/bin/sh", Environment::empty()).env("A", "b"));
/// assert_eq!(runner.run(command()?)?.stdout.expose(), b"token-1");
/// assert_eq!(runner.run(command()?)?.exit.code(), 3);
/// assert_eq!(runner.commands().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct ScriptedRunner {
    state: Mutex<ScriptState>,
}

#[derive(Debug, Default)]
struct ScriptState {
    scripts: VecDeque<Script>,
    commands: Vec<Command>,
}

impl ScriptedRunner {
    /// Creates a runner with these scripts.
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let state = ScriptState { scripts: scripts.into_iter().collect(), commands: Vec::new() };
        ScriptedRunner { state: Mutex::new(state) }
    }

    /// Adds a script.
    pub fn push(&self, script: Script) {
        self.lock().scripts.push_back(script);
    }

    /// The commands run so far, in order.
    pub fn commands(&self) -> Vec<Command> {
        self.lock().commands.clone()
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner for ScriptedRunner {
    fn run(&self, permitted: Permitted<Command>) -> Result<Completed, RunError> {
        let (command, program) = permitted.into_parts();
        let mut state = self.lock();
        state.commands.push(command.clone());
        let script = state.scripts.pop_front();
        drop(state);
        match script {
            Some(script) => script.play(&command, program.path),
            None => Err(not_started(program.path, "the script has no run left")),
        }
    }
}

fn not_started(program: PathBuf, why: &str) -> RunError {
    RunError::Start { program, source: Arc::new(io::Error::other(why)) }
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Script {
    end: ScriptEnd,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    took: Duration,
    gate: Option<RunGate>,
}

#[derive(Clone, Debug)]
enum ScriptEnd {
    Exit(Exit),
    Never,
    Error(RunError),
}

impl Script {
    /// Prints this and exits with code 0.
    pub fn prints(stdout: impl Into<Vec<u8>>) -> Self {
        Script { stdout: stdout.into(), ..Self::exits(0) }
    }

    /// Exits with this code.
    pub fn exits(code: i32) -> Self {
        Self::ending(ScriptEnd::Exit(Exit::Code(code)))
    }

    /// Is killed by this signal.
    pub fn dies_by(signal: i32) -> Self {
        Self::ending(ScriptEnd::Exit(Exit::Signal(signal)))
    }

    /// Exceeds its time limit, without spending the time.
    pub fn never_ends() -> Self {
        Self::ending(ScriptEnd::Never)
    }

    /// Fails with this error.
    pub fn fails(error: RunError) -> Self {
        Self::ending(ScriptEnd::Error(error))
    }

    /// Sets stdout.
    #[must_use]
    pub fn stdout(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdout = bytes.into();
        self
    }

    /// Sets stderr.
    #[must_use]
    pub fn stderr(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stderr = bytes.into();
        self
    }

    /// Sets the reported duration.
    #[must_use]
    pub fn took(mut self, took: Duration) -> Self {
        self.took = took;
        self
    }

    /// Blocks until the gate is open.
    #[must_use]
    pub fn held_by(mut self, gate: &RunGate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    fn ending(end: ScriptEnd) -> Self {
        Script { end, stdout: Vec::new(), stderr: Vec::new(), took: Duration::ZERO, gate: None }
    }

    /// Applies the command's limits as a real run does.
    fn play(self, command: &Command, program: PathBuf) -> Result<Completed, RunError> {
        if let Some(gate) = &self.gate {
            gate.wait_until_open();
        }
        let stderr = match &command.stderr {
            Stderr::Inherit | Stderr::Null => None,
            Stderr::Tail(keep) => Some(StderrTail::from_bytes(self.stderr, *keep, false)),
            Stderr::Forward(receiver) => {
                receiver(&self.stderr);
                None
            }
        };
        if self.stdout.len() > command.stdout_cap {
            return Err(RunError::StdoutTooLarge { program, cap: command.stdout_cap, stderr });
        }
        match (self.end, command.limit) {
            (ScriptEnd::Exit(exit), _) => {
                let stdout = Secret::new(self.stdout);
                Ok(Completed { program, exit, stdout, stdout_closed: true, stderr, took: self.took })
            }
            (ScriptEnd::Never, Some(after)) => Err(RunError::TimedOut { program, after, stderr }),
            (ScriptEnd::Never, None) => {
                Err(not_started(program, "the script never ends and the command has no limit"))
            }
            (ScriptEnd::Error(error), _) => Err(error),
        }
    }
}

/// Blocks runs until it is opened.
#[derive(Clone, Debug, Default)]
pub struct RunGate(Arc<(Mutex<RunGateState>, Condvar)>);

#[derive(Debug, Default)]
struct RunGateState {
    open: bool,
    arrived: usize,
}

impl RunGate {
    /// Creates a closed gate.
    pub fn closed() -> Self {
        RunGate::default()
    }

    /// Unblocks all current and later runs.
    pub fn open(&self) {
        self.lock().open = true;
        self.0.1.notify_all();
    }

    /// Waits until this many runs have reached the gate; `false` if they have not within the limit.
    pub fn wait_for_arrivals(&self, runs: usize, limit: Duration) -> bool {
        let missing = |state: &mut RunGateState| state.arrived < runs;
        let waited = self.0.1.wait_timeout_while(self.lock(), limit, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.arrived >= runs
    }

    fn wait_until_open(&self) {
        let mut state = self.lock();
        state.arrived = state.arrived.saturating_add(1);
        self.0.1.notify_all();
        while !state.open {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunGateState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Environment;
    use crate::contract::{ChildBehavior, RunnerFixture, check_runner};
    use crate::policy::Policy;
    use crate::single_flight::SingleFlight;

    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    fn permitted() -> Permitted<Command> {
        Policy::AllowAll.permit(Command::new("/bin/sh", Environment::empty())).unwrap()
    }

    /// The scripted runner satisfies the contract of the real one.
    struct ScriptFixture;

    impl RunnerFixture for ScriptFixture {
        fn prepare(&self, behavior: ChildBehavior) -> (Arc<dyn Runner>, Command) {
            let script = match behavior {
                ChildBehavior::Print { stdout, stderr, code } => {
                    Script::exits(code).stdout(stdout).stderr(stderr)
                }
                ChildBehavior::DieBy(signal) => Script::dies_by(signal),
                ChildBehavior::NeverEnd => Script::never_ends(),
            };
            (Arc::new(ScriptedRunner::new([script])), Command::new("/bin/sh", Environment::empty()))
        }
    }

    #[test]
    fn scripted_runner_satisfies_the_contract() {
        check_runner(&ScriptFixture);
    }

    #[test]
    fn returns_scripts_in_order_and_records_commands() {
        let runner = ScriptedRunner::new([Script::prints("one")]);
        runner.push(Script::exits(2).took(Duration::from_secs(3)));
        assert_eq!(runner.run(permitted()).unwrap().stdout.expose(), b"one");
        let second = runner.run(permitted()).unwrap();
        assert_eq!((second.exit, second.took), (Exit::Code(2), Duration::from_secs(3)));
        let error = runner.run(permitted()).unwrap_err();
        assert!(matches!(error, RunError::Start { .. }), "{error:?}");
        assert_eq!(runner.commands().len(), 3);
    }

    #[test]
    fn gate_blocks_one_run_for_sixty_four_waiters() {
        // C420, C421, T05: combined as a client uses them.
        let (gate, flights) = (RunGate::closed(), SingleFlight::<&str, Completed, RunError>::new());
        let runner = Arc::new(ScriptedRunner::new([Script::prints("token").held_by(&gate)]));
        let waiters: Vec<_> = (0..64)
            .map(|_| {
                let runner = Arc::clone(&runner);
                flights.join("key", move || runner.run(permitted()))
            })
            .collect();
        assert!(gate.wait_for_arrivals(1, TEST_TIMEOUT));
        assert!(!gate.wait_for_arrivals(2, Duration::ZERO));
        gate.open();
        for waiter in waiters {
            assert_eq!(waiter.wait().unwrap().stdout.expose(), b"token");
        }
        assert_eq!(runner.commands().len(), 1);
    }
}
