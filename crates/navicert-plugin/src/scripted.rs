//! A [`Runner`] that follows a script: for tests of whatever runs plugins. It starts nothing, plays each result in
//! order, remembers what it was asked to run, and can be held in the middle of a run.

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

/// Plays scripts in order, one per run. The command has to be permitted as always, so it names a program that exists
/// (`/bin/sh`, say); it is not started.
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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    scripts: VecDeque<Script>,
    commands: Vec<Command>,
}

impl ScriptedRunner {
    /// A runner with these scripts.
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let state = State { scripts: scripts.into_iter().collect(), commands: Vec::new() };
        ScriptedRunner { state: Mutex::new(state) }
    }

    /// Adds one more.
    pub fn push(&self, script: Script) {
        self.lock().scripts.push_back(script);
    }

    /// What was run so far, in order.
    pub fn commands(&self) -> Vec<Command> {
        self.lock().commands.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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

/// What one run does.
#[derive(Clone, Debug)]
pub struct Script {
    end: End,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    took: Duration,
    gate: Option<Gate>,
}

#[derive(Clone, Debug)]
enum End {
    Exit(Exit),
    Never,
    Error(RunError),
}

impl Script {
    /// Prints this and ends as it should.
    pub fn prints(stdout: impl Into<Vec<u8>>) -> Self {
        Script { stdout: stdout.into(), ..Self::exits(0) }
    }

    /// Ends with this exit code.
    pub fn exits(code: i32) -> Self {
        Self::ending(End::Exit(Exit::Code(code)))
    }

    /// Dies by this signal.
    pub fn dies_by(signal: i32) -> Self {
        Self::ending(End::Exit(Exit::Signal(signal)))
    }

    /// Runs into its limit. The time is not spent.
    pub fn never_ends() -> Self {
        Self::ending(End::Never)
    }

    /// Gives no result.
    pub fn fails(error: RunError) -> Self {
        Self::ending(End::Error(error))
    }

    /// Prints this as well.
    #[must_use]
    pub fn stdout(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdout = bytes.into();
        self
    }

    /// Says this on stderr.
    #[must_use]
    pub fn stderr(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stderr = bytes.into();
        self
    }

    /// Claims to have taken this long.
    #[must_use]
    pub fn took(mut self, took: Duration) -> Self {
        self.took = took;
        self
    }

    /// Does not end before the gate is open.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    fn ending(end: End) -> Self {
        Script { end, stdout: Vec::new(), stderr: Vec::new(), took: Duration::ZERO, gate: None }
    }

    /// Applies the limits of the command as a real run would.
    fn play(self, command: &Command, program: PathBuf) -> Result<Completed, RunError> {
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        let stderr = match &command.stderr {
            Stderr::Inherit => None,
            Stderr::Tail(keep) => Some(StderrTail::of(self.stderr, *keep, false)),
            Stderr::Forward(receiver) => {
                receiver(&self.stderr);
                None
            }
        };
        if self.stdout.len() > command.stdout_cap {
            return Err(RunError::StdoutTooLarge { program, cap: command.stdout_cap, stderr });
        }
        match (self.end, command.limit) {
            (End::Exit(exit), _) => {
                let stdout = Secret::new(self.stdout);
                Ok(Completed { program, exit, stdout, stdout_closed: true, stderr, took: self.took })
            }
            (End::Never, Some(after)) => Err(RunError::TimedOut { program, after, stderr }),
            (End::Never, None) => {
                Err(not_started(program, "the script never ends and the command has no limit"))
            }
            (End::Error(error), _) => Err(error),
        }
    }
}

/// Holds runs until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    arrived: usize,
}

impl Gate {
    /// A gate that is closed.
    pub fn closed() -> Self {
        Gate::default()
    }

    /// Lets everyone through, now and later.
    pub fn open(&self) {
        self.lock().open = true;
        self.0.1.notify_all();
    }

    /// Waits until so many runs have come to the gate; `false` if they have not within the limit.
    pub fn wait_for_arrivals(&self, runs: usize, limit: Duration) -> bool {
        let missing = |state: &mut GateState| state.arrived < runs;
        let waited = self.0.1.wait_timeout_while(self.lock(), limit, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.arrived >= runs
    }

    fn pass(&self) {
        let mut state = self.lock();
        state.arrived = state.arrived.saturating_add(1);
        self.0.1.notify_all();
        while !state.open {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Environment;
    use crate::contract::{Act, Stage, every_promise_holds};
    use crate::policy::Policy;
    use crate::single_flight::SingleFlight;

    const SOON: Duration = Duration::from_secs(60);

    fn permitted() -> Permitted<Command> {
        Policy::AllowAll.permit(Command::new("/bin/sh", Environment::empty())).unwrap()
    }

    /// Scripts on a stage: the scripted runner keeps what the real one promises.
    struct Scripts;

    impl Stage for Scripts {
        fn prepare(&self, act: Act) -> (Arc<dyn Runner>, Command) {
            let script = match act {
                Act::Say { stdout, stderr, code } => Script::exits(code).stdout(stdout).stderr(stderr),
                Act::DieBy(signal) => Script::dies_by(signal),
                Act::NeverEnd => Script::never_ends(),
            };
            (Arc::new(ScriptedRunner::new([script])), Command::new("/bin/sh", Environment::empty()))
        }
    }

    #[test]
    fn the_contract_holds_for_scripts() {
        every_promise_holds(&Scripts);
    }

    #[test]
    fn scripts_are_played_in_order_and_commands_remembered() {
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
    fn a_gate_holds_one_run_for_sixty_four_waiters() {
        // C420, C421, T05: the pieces as a client puts them together.
        let (gate, flights) = (Gate::closed(), SingleFlight::<&str, Completed, RunError>::new());
        let runner = Arc::new(ScriptedRunner::new([Script::prints("token").held_by(&gate)]));
        let waiters: Vec<_> = (0..64)
            .map(|_| {
                let runner = Arc::clone(&runner);
                flights.join("key", move || runner.run(permitted()))
            })
            .collect();
        assert!(gate.wait_for_arrivals(1, SOON));
        assert!(!gate.wait_for_arrivals(2, Duration::ZERO));
        gate.open();
        for waiter in waiters {
            assert_eq!(waiter.wait().unwrap().stdout.expose(), b"token");
        }
        assert_eq!(runner.commands().len(), 1);
    }
}
