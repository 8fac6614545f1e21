//! A command: a program, its arguments, its exact environment, its streams and its limits.
//!
//! [`Policy::permit`](crate::Policy::permit) turns a [`Command`] into a [`Permitted<Command>`](crate::Permitted), which a
//! [`Runner`](crate::Runner) requires.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;

use crate::error::MalformedCommand;
use crate::resolve::clean_command;

/// Default limit on stdout in bytes.
// C305
pub const DEFAULT_STDOUT_CAP: usize = 1024 * 1024;
/// Default time between SIGTERM and SIGKILL.
// C306
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// Default time to wait for the end of stdout after the child has exited.
// C307
pub const DEFAULT_EOF_WAIT: Duration = Duration::from_secs(2);

/// A program to run with its arguments, environment, streams and limits.
///
/// The working directory is the caller's. `Debug` shows no arguments, no values of environment variables and no stdin:
/// each may contain a secret.
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
// C302, I91
#[derive(Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    inherited: Environment,
    dropped: Vec<OsString>,
    extra: Vec<(OsString, OsString)>,
    protocol: Vec<(OsString, OsString)>,
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
    /// Creates a command without arguments, stdin or time limit, with inherited stderr and default limits.
    ///
    /// `inherited` is the base environment of the child, and its `PATH` is searched for a bare program name: the client's
    /// own environment, passed in as a value.
    // C301
    pub fn new(program: impl Into<OsString>, inherited: Environment) -> Self {
        Command {
            program: program.into(),
            args: Vec::new(),
            inherited,
            dropped: Vec::new(),
            extra: Vec::new(),
            protocol: Vec::new(),
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

    /// Adds arguments. They are passed verbatim, without a shell.
    // C302
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable in addition to the inherited ones, because a configuration says so; the last value of a name wins.
    /// An allowlist entry must name it in `envNames`.
    // C303, I92, C741
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    /// Sets a variable of the plugin's protocol. It wins over every other value of the name, and policies do not decide
    /// about it.
    // C303
    #[must_use]
    pub fn protocol_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.protocol.push((name.into(), value.into()));
        self
    }

    /// Removes an *inherited* variable before the extra ones are applied.
    // C304
    #[must_use]
    pub fn drop_env(mut self, name: impl Into<OsString>) -> Self {
        self.dropped.push(name.into());
        self
    }

    /// Sets the child's standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Declares a setting that is passed in another way (for example on stdin) and makes the program load code, such as a
    /// library. An allowlist must allow the value too.
    #[must_use]
    pub fn declare(mut self, setting: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((setting.into(), value.into()));
        self
    }

    /// Declares the names of other settings passed to the program. An allowlist entry that lists settings must list them.
    #[must_use]
    pub fn declare_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.setting_names.extend(names);
        self
    }

    /// Passes stdout to `receiver` as it is read, in addition to capturing it.
    #[must_use]
    pub fn on_stdout(mut self, receiver: StdoutReceiver) -> Self {
        self.stdout_receiver = Some(receiver);
        self
    }

    /// Sets the limit on stdout in bytes; a child that exceeds it is killed.
    // C305
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

    /// Sets the time limit, measured from just before the start; `None` means no limit.
    // C306, I95
    #[must_use]
    pub fn limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the time between SIGTERM and SIGKILL after the time limit.
    // C306
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long to wait for the end of stdout after the child has exited.
    // C307
    #[must_use]
    pub fn eof_wait(mut self, wait: Duration) -> Self {
        self.eof_wait = wait;
        self
    }

    /// Sets the child's process group, which determines what is signalled to end the run.
    #[must_use]
    pub fn process_group(mut self, group: ProcessGroup) -> Self {
        self.group = group;
        self
    }

    /// The program as configured.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The program as configured, lexically cleaned: the command in client-go's messages, and the child's `argv[0]`.
    // C134, C325
    pub(crate) fn cleaned_program(&self) -> OsString {
        clean_command(&self.program)
    }

    /// The arguments after the program. They may contain secrets: do not print them.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// The declared settings with their values.
    pub(crate) fn declared(&self) -> &[(String, String)] {
        &self.settings
    }

    /// The declared names of other settings.
    pub(crate) fn declared_names(&self) -> &[String] {
        &self.setting_names
    }

    /// The names of the variables that a configuration sets in addition to the inherited ones, in order.
    pub(crate) fn extra_names(&self) -> impl Iterator<Item = &OsStr> {
        self.extra.iter().map(|(name, _)| name.as_os_str())
    }

    /// The value of a variable in the child's environment.
    pub fn variable(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let name = name.as_ref();
        self.environment().filter(|(found, _)| same_name(found, name)).last().map(|(_, value)| value)
    }

    /// The bytes passed on stdin, if any.
    pub fn stdin_bytes(&self) -> Option<&Secret<Vec<u8>>> {
        match &self.stdin {
            Stdin::Bytes(bytes) => Some(bytes),
            Stdin::Null | Stdin::Inherit => None,
        }
    }

    /// The environment in the order it is applied; the last value of a name wins.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let kept =
            self.inherited.iter().filter(|(name, _)| !self.dropped.iter().any(|gone| same_name(gone, name)));
        let added = self.extra.iter().chain(&self.protocol);
        kept.chain(added.map(|(name, value)| (name.as_os_str(), value.as_os_str())))
    }

    /// The `PATH` to search for a bare name: the inherited one, never one of the extra variables.
    // C301
    pub(crate) fn search_path(&self) -> Option<&OsStr> {
        self.inherited.variable("PATH")
    }

    /// Rejects what the operating system cannot pass on faithfully. A name with `=` would set another variable than the one
    /// that the policy checked.
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
        for (name, value) in self.extra.iter().chain(&self.protocol) {
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
            .field("args", &format_args!("{} redacted", self.args.len()))
            .field("inherited", &self.inherited)
            .field("dropped", &self.dropped)
            .field("extra", &self.extra_names().collect::<Vec<_>>())
            .field("protocol", &self.protocol.iter().map(|(name, _)| name).collect::<Vec<_>>())
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
/// Cheap to clone. `Debug` shows only the number of variables.
#[derive(Clone)]
pub struct Environment(Arc<[(OsString, OsString)]>);

impl Environment {
    /// No variables at all.
    pub fn empty() -> Self {
        Environment(Arc::new([]))
    }

    /// The value of a variable; the last value of a name wins.
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

/// The child's standard input.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// Nothing: the null device.
    // C222
    Null,
    /// The caller's standard input. Such a run holds the [`TerminalLock`](crate::TerminalLock).
    // C423
    Inherit,
    /// These bytes, then end of file. It is no error if the child does not read them.
    // I93
    Bytes(Secret<Vec<u8>>),
}

/// Receives a child's stderr.
pub type StderrReceiver = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Receives a child's stdout as it is read, in chunks of any size. Called on the thread of the run.
pub type StdoutReceiver = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Where the child's standard error goes.
#[derive(Clone)]
pub enum Stderr {
    /// Inherits the caller's.
    // C305
    Inherit,
    /// The null device: for programs that outlive this process, and may write at any time.
    Null,
    /// Captures the last bytes, up to this number.
    // I94
    Tail(usize),
    /// Passes it on in chunks of any size. Called on the thread of the run; a slow receiver slows down the run.
    // C305
    Forward(StderrReceiver),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stderr::Inherit => f.write_str("Inherit"),
            Stderr::Null => f.write_str("Null"),
            Stderr::Tail(bytes) => write!(f, "Tail({bytes})"),
            Stderr::Forward(_) => f.write_str("Forward(…)"),
        }
    }
}

/// The child's process group, which determines what is signalled to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessGroup {
    /// The caller's group, for clients with a controlling terminal: Ctrl-C reaches the child, and it may use the terminal.
    /// Only the child itself is signalled.
    // C308
    Inherit,
    /// A new group, for clients without a terminal. A run that exceeds its limit ends with the whole group; background
    /// processes of a run that exited by itself continue.
    // C306, C308
    New,
    /// A new group that is always killed at the end of the run.
    // I96
    NewKilledAtEnd,
}

/// Whether two variable names are equal: case-insensitive on Windows.
// C303
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
    fn last_value_of_a_variable_wins() {
        // C303
        let command =
            Command::new("p", base()).env("AWS_PROFILE", "first").env("X", "1").env("AWS_PROFILE", "last");
        assert_eq!(command.variable("AWS_PROFILE"), Some("last".as_ref()));
        assert_eq!(command.variable("HOME"), Some("/home/me".as_ref()));
        assert_eq!(command.variable("X"), Some("1".as_ref()));
        assert_eq!(command.variable("absent"), None);
    }

    #[test]
    fn protocol_variable_wins_over_all_others() {
        // C303
        let command = Command::new("p", base()).protocol_env("HOME", "ours").env("HOME", "theirs");
        assert_eq!(command.variable("HOME"), Some("ours".as_ref()));
        assert_eq!(command.extra_names().collect::<Vec<_>>(), ["HOME"]);
    }

    #[test]
    fn drop_env_removes_only_inherited_variables() {
        // C304: dropped before the extra variables are applied.
        let command =
            Command::new("p", base()).env("AWS_PROFILE", "again").drop_env("AWS_PROFILE").drop_env("HOME");
        assert_eq!(command.variable("AWS_PROFILE"), Some("again".as_ref()));
        assert_eq!(command.variable("HOME"), None);
    }

    #[test]
    fn search_path_is_the_inherited_one() {
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
            .protocol_env("INFO", "canary-e")
            .stdin(Stdin::Bytes(Secret::from(b"canary-d".to_vec())));
        for shown in [format!("{command:?}"), format!("{command:#?}")] {
            assert!(!shown.contains("canary") && !shown.contains("--token"), "{shown}");
            assert!(shown.contains("plugin") && shown.contains("EXTRA"), "{shown}");
        }
    }

    #[test]
    fn rejects_malformed_commands() {
        // I92 for NUL; a name with `=` in it would set another variable than the one a policy looked at (C741).
        let new = || Command::new("p", base());
        let cases = [
            (Command::new("", base()), "the command is empty"),
            (Command::new("p\0", base()), "the command contains a NUL byte"),
            (new().args(["a\0b"]), "an argument contains a NUL byte"),
            (new().env("", "x"), "invalid environment variable name ``"),
            (new().env("LD_PRELOAD=/x", ""), "invalid environment variable name `LD_PRELOAD=/x`"),
            (new().protocol_env("A=", "x"), "invalid environment variable name `A=`"),
            (new().env("A", "b\0c"), "environment variable `A` contains a NUL byte"),
        ];
        for (command, message) in cases {
            assert_eq!(command.check_shape().unwrap_err().to_string(), message);
        }
        assert!(new().args([""]).env("A", "=b=").check_shape().is_ok());
    }
}
