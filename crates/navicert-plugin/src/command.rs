//! What is to be run: a program, its arguments, its exact environment, its streams and its limits.
//!
//! A [`Command`] is only a wish. [`Policy::permit`](crate::Policy::permit) turns it into a
//! [`Permitted<Command>`](crate::Permitted), and only that can be given to a [`Runner`](crate::Runner).

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;

use crate::error::MalformedCommand;
use crate::resolve::clean_command;

/// How much stdout is read before the run is stopped as too talkative (client-credentials.md C305).
pub const DEFAULT_STDOUT_CAP: usize = 1024 * 1024;
/// How long a child may take to end after it was asked to (C306).
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// How long a grandchild may keep stdout open after the child is gone (C307).
pub const DEFAULT_EOF_WAIT: Duration = Duration::from_secs(2);

/// A program to run and everything it will be given.
///
/// The working directory is the caller's (C302, I91). `Debug` shows neither arguments nor values of environment
/// variables nor what goes to stdin: each of them may hold a secret.
///
/// ```
/// use std::time::Duration;
/// use navicert_plugin::{Command, Environment};
///
/// let inherited: Environment = [("PATH", "/usr/bin"), ("HOME", "/home/me")].into_iter().collect();
/// let command = Command::new("aws", inherited)
///     .args(["eks", "get-token"])
///     .env("AWS_PROFILE", "production")
///     .limit(Some(Duration::from_secs(300)));
/// assert_eq!(command.variable("AWS_PROFILE"), Some("production".as_ref()));
/// ```
#[derive(Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    inherited: Environment,
    dropped: Vec<OsString>,
    extra: Vec<(OsString, OsString)>,
    pub(crate) stdin: Stdin,
    settings: Vec<(String, String)>,
    setting_names: Vec<String>,
    pub(crate) stdout_cap: usize,
    pub(crate) stdout_receiver: Option<StdoutReceiver>,
    pub(crate) stderr: Stderr,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) eof_wait: Duration,
    pub(crate) group: ProcessGroup,
}

impl Command {
    /// A command with no arguments, nothing on stdin, stderr inherited, no run limit, and the default bounds.
    ///
    /// `inherited` is the environment the child starts from, and its `PATH` is where a bare program name is looked
    /// for (C301): the client's own environment, passed in as a value.
    pub fn new(program: impl Into<OsString>, inherited: Environment) -> Self {
        Command {
            program: program.into(),
            args: Vec::new(),
            inherited,
            dropped: Vec::new(),
            extra: Vec::new(),
            settings: Vec::new(),
            setting_names: Vec::new(),
            stdin: Stdin::Null,
            stdout_cap: DEFAULT_STDOUT_CAP,
            stdout_receiver: None,
            stderr: Stderr::Inherit,
            limit: None,
            grace: DEFAULT_GRACE,
            eof_wait: DEFAULT_EOF_WAIT,
            group: ProcessGroup::Inherit,
        }
    }

    /// Adds arguments; they reach the program verbatim, no shell in between (C302).
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable on top of the inherited ones; of several with one name the last wins (C303, I92).
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    /// Removes an *inherited* variable before the extra ones are applied (C304).
    #[must_use]
    pub fn drop_env(mut self, name: impl Into<OsString>) -> Self {
        self.dropped.push(name.into());
        self
    }

    /// What the child reads from its standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Declares something the program will be told by other means (on stdin, say) that makes it run other code: a
    /// library to load. An allowlist has to name the value too.
    #[must_use]
    pub fn declare(mut self, setting: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((setting.into(), value.into()));
        self
    }

    /// Declares what else the program will be told, by name: an entry that lists the settings a program may have has to
    /// list these.
    #[must_use]
    pub fn declare_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.setting_names.extend(names);
        self
    }

    /// Shows stdout as it comes, besides keeping it.
    #[must_use]
    pub fn on_stdout(mut self, receiver: StdoutReceiver) -> Self {
        self.stdout_receiver = Some(receiver);
        self
    }

    /// How many bytes of stdout are accepted; one more and the child is killed (C305).
    #[must_use]
    pub fn stdout_cap(mut self, bytes: usize) -> Self {
        self.stdout_cap = bytes;
        self
    }

    /// Where the child's standard error goes.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// How long the run may take, measured from just before the start (C306, I95); `None` is no limit.
    #[must_use]
    pub fn limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// How long the child has between SIGTERM and SIGKILL once the limit has passed (C306).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long to wait for the end of stdout once the child is gone (C307).
    #[must_use]
    pub fn eof_wait(mut self, wait: Duration) -> Self {
        self.eof_wait = wait;
        self
    }

    /// Whose process group the child joins, and what is signalled when it has to end.
    #[must_use]
    pub fn process_group(mut self, group: ProcessGroup) -> Self {
        self.group = group;
        self
    }

    /// The program as configured.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The program as configured, lexically cleaned: what upstream's messages call the command, and what the child
    /// sees as `argv[0]` (C134, C325).
    pub fn cleaned_program(&self) -> OsString {
        clean_command(&self.program)
    }

    /// The arguments after the program. They may hold secrets: do not print them.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// What was declared.
    pub fn declared(&self) -> &[(String, String)] {
        &self.settings
    }

    /// The names of what else it will be told.
    pub fn declared_names(&self) -> &[String] {
        &self.setting_names
    }

    /// The names of the variables set on top of the inherited ones, in order.
    pub fn extra_names(&self) -> impl Iterator<Item = &OsStr> {
        self.extra.iter().map(|(name, _)| name.as_os_str())
    }

    /// What the child will find in this variable.
    pub fn variable(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let name = name.as_ref();
        self.environment().filter(|(found, _)| same_name(found, name)).last().map(|(_, value)| value)
    }

    /// What the child will read from stdin, when that is bytes.
    pub fn stdin_bytes(&self) -> Option<&Secret<Vec<u8>>> {
        match &self.stdin {
            Stdin::Bytes(bytes) => Some(bytes),
            Stdin::Null | Stdin::Inherit => None,
        }
    }

    /// The environment in the order it is applied; of a repeated name the last one counts.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let kept =
            self.inherited.iter().filter(|(name, _)| !self.dropped.iter().any(|gone| same_name(gone, name)));
        kept.chain(self.extra.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())))
    }

    /// The `PATH` that a bare name is searched in: the inherited one, never one from the extra variables (C301).
    pub(crate) fn search_path(&self) -> Option<&OsStr> {
        self.inherited.variable("PATH")
    }

    /// Refuses what the operating system could not pass on faithfully. A name with `=` in it would set another
    /// variable than the one a policy looked at.
    pub(crate) fn check_shape(&self) -> Result<(), MalformedCommand> {
        let has_nul = |text: &OsStr| text.as_encoded_bytes().contains(&0);
        if self.program.is_empty() {
            return Err(MalformedCommand::EmptyProgram);
        }
        if has_nul(&self.program) {
            return Err(MalformedCommand::NulInProgram);
        }
        if self.args.iter().any(|argument| has_nul(argument)) {
            return Err(MalformedCommand::NulInArgument);
        }
        for (name, value) in &self.extra {
            let shown = || name.to_string_lossy().into_owned();
            if name.is_empty() || has_nul(name) || name.as_encoded_bytes().contains(&b'=') {
                return Err(MalformedCommand::VariableName { name: shown() });
            }
            if has_nul(value) {
                return Err(MalformedCommand::NulInVariable { name: shown() });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &format_args!("{} not shown", self.args.len()))
            .field("inherited", &self.inherited)
            .field("dropped", &self.dropped)
            .field("extra", &self.extra_names().collect::<Vec<_>>())
            .field("stdin", &self.stdin)
            .field("stdout_cap", &self.stdout_cap)
            .field("stderr", &self.stderr)
            .field("limit", &self.limit)
            .field("grace", &self.grace)
            .field("eof_wait", &self.eof_wait)
            .field("group", &self.group)
            .finish()
    }
}

/// A set of environment variables, passed in as a value: nothing in this crate reads the process's own.
///
/// Cheap to clone. `Debug` shows only how many there are.
#[derive(Clone)]
pub struct Environment(Arc<[(OsString, OsString)]>);

impl Environment {
    /// No variables at all.
    pub fn empty() -> Self {
        Environment(Arc::new([]))
    }

    /// The value of a variable; of several with one name the last.
    pub fn variable(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.iter().filter(|(found, _)| same_name(found, name.as_ref())).last().map(|(_, value)| value)
    }

    /// Every variable in order.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Environment(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

/// What the child reads.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// Nothing: the null device (C222).
    Null,
    /// The caller's own standard input. Such a run holds the terminal while it lasts (C423).
    Inherit,
    /// These bytes, then end of file. A child that does not read them is no error (I93).
    Bytes(Secret<Vec<u8>>),
}

/// Somebody who listens to a child's stderr.
pub type StderrReceiver = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Somebody who sees a child's stdout as it comes, in pieces of any size. Called from the thread of the run.
pub type StdoutReceiver = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Where the child's standard error goes.
#[derive(Clone)]
pub enum Stderr {
    /// Where the caller's goes (C305).
    Inherit,
    /// Kept: the last so many bytes (I94).
    Tail(usize),
    /// Handed on as it comes, in pieces of any size (C305). Called from the thread of the run; a slow receiver
    /// slows the run down.
    Forward(StderrReceiver),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stderr::Inherit => f.write_str("Inherit"),
            Stderr::Tail(bytes) => write!(f, "Tail({bytes})"),
            Stderr::Forward(_) => f.write_str("Forward(…)"),
        }
    }
}

/// Whose process group the child joins, and so who is signalled when a run has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessGroup {
    /// The caller's: Ctrl-C reaches the child and it may use the terminal. Only the child itself is signalled
    /// (C308, for a client with a controlling terminal).
    Inherit,
    /// Its own. A run past its limit ends with the whole group; after a run that ended by itself, whatever it left
    /// in the background lives on (C306, C308 for a client without a terminal).
    New,
    /// Its own, and nothing of it survives the run, however that ended (I96).
    NewKilledAtEnd,
}

/// Whether two names mean the same variable: without regard to case on Windows (C303).
pub(crate) fn same_name(one: &OsStr, other: &OsStr) -> bool {
    if cfg!(windows) { one.eq_ignore_ascii_case(other) } else { one == other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Environment {
        [("PATH", "/usr/bin"), ("HOME", "/home/me"), ("AWS_PROFILE", "mine")].into_iter().collect()
    }

    #[test]
    fn the_last_value_of_a_variable_wins_and_nothing_else_changes() {
        // C303
        let command =
            Command::new("p", base()).env("AWS_PROFILE", "first").env("X", "1").env("AWS_PROFILE", "last");
        assert_eq!(command.variable("AWS_PROFILE"), Some("last".as_ref()));
        assert_eq!(command.variable("HOME"), Some("/home/me".as_ref()));
        assert_eq!(command.variable("X"), Some("1".as_ref()));
        assert_eq!(command.variable("absent"), None);
    }

    #[test]
    fn dropping_takes_away_only_what_was_inherited() {
        // C304: dropped before the extra variables are applied.
        let command =
            Command::new("p", base()).env("AWS_PROFILE", "again").drop_env("AWS_PROFILE").drop_env("HOME");
        assert_eq!(command.variable("AWS_PROFILE"), Some("again".as_ref()));
        assert_eq!(command.variable("HOME"), None);
    }

    #[test]
    fn the_search_path_is_the_inherited_one() {
        // C301: not one set through exec `env`, and dropping it for the child does not change where we look.
        let command = Command::new("p", base()).env("PATH", "/evil").drop_env("PATH");
        assert_eq!(command.search_path(), Some("/usr/bin".as_ref()));
        assert_eq!(command.variable("PATH"), Some("/evil".as_ref()));
    }

    #[test]
    fn debug_shows_no_argument_no_value_and_no_stdin() {
        let inherited = [("INHERITED", "canary-a")].into_iter().collect();
        let command = Command::new("plugin", inherited)
            .args(["--token", "canary-b"])
            .env("EXTRA", "canary-c")
            .stdin(Stdin::Bytes(Secret::from(b"canary-d".to_vec())));
        for shown in [format!("{command:?}"), format!("{command:#?}")] {
            assert!(!shown.contains("canary") && !shown.contains("--token"), "{shown}");
            assert!(shown.contains("plugin") && shown.contains("EXTRA"), "{shown}");
        }
    }

    #[test]
    fn what_the_system_cannot_pass_on_is_refused() {
        // I92 for NUL; a name with `=` in it would set another variable than the one a policy looked at (C741).
        let new = || Command::new("p", base());
        let cases = [
            (Command::new("", base()), "the command is empty"),
            (Command::new("p\0", base()), "the command contains a NUL byte"),
            (new().args(["a\0b"]), "an argument contains a NUL byte"),
            (new().env("", "x"), "`` is not the name of an environment variable"),
            (new().env("LD_PRELOAD=/x", ""), "`LD_PRELOAD=/x` is not the name of an environment variable"),
            (new().env("A", "b\0c"), "the environment variable `A` contains a NUL byte"),
        ];
        for (command, message) in cases {
            assert_eq!(command.check_shape().unwrap_err().to_string(), message);
        }
        assert!(new().args([""]).env("A", "=b=").check_shape().is_ok());
    }
}
