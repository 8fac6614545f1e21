//! Shows changes of files, asks, and writes them: for every verb that writes a kubeconfig or a kuberc.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use navicert_client::edit::{FileChange, FileEditError, FileEditErrorClass, KubercChanges, UsedPlugin};
use navicert_client::kubeconfig::MergedKubeconfig;
use navicert_client::kuberc::{KubercLocation, KubercSource};
use navicert_client::report::{FileChangeReport, ForbiddenPluginReport};
use navicert_types::{error_chain, redact};

use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// What became of the changes.
pub(crate) struct WriteOutcome {
    pub(crate) exit: Exit,
    pub(crate) files: Vec<FileChangeReport>,
    /// Whether the person has seen the changes already.
    is_shown: bool,
}

impl WriteOutcome {
    /// The changes and what became of them, without what was shown before.
    pub(crate) fn text(&self) -> String {
        let line = |file: &FileChangeReport| match self.is_shown {
            true => format!("{}\n", file.conclusion()),
            false => file.to_string(),
        };
        self.files.iter().map(line).collect()
    }
}

/// How much is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions {
    /// `--yes`.
    pub(crate) are_answered: bool,
    is_terminal: bool,
}

impl Questions {
    /// Questions to the person at the terminal, if there is one.
    pub(crate) fn new(are_answered: bool) -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        Questions { are_answered, is_terminal }
    }

    /// Whether the person agrees; without one, no.
    fn ask(self, question: &str, output: &mut Output) -> bool {
        if !self.is_terminal {
            return false;
        }
        output.note(&redact::terminal(question));
        let _ = write!(io::stderr(), "[y/N] ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }
}

/// Writes the changes if the person agrees, or has agreed with `--yes`.
pub(crate) fn write(
    changes: &[FileChange],
    questions: Questions,
    output: &mut Output,
) -> Result<WriteOutcome, Failure> {
    let mut files: Vec<FileChangeReport> = changes.iter().map(FileChangeReport::new).collect();
    if changes.iter().all(FileChange::is_unchanged) {
        return Ok(WriteOutcome { exit: Exit::Done, files, is_shown: false });
    }
    let is_shown = !questions.are_answered && questions.is_terminal;
    if is_shown {
        files.iter().for_each(|file| output.note(file.diff.trim_end_matches('\n')));
    }
    if !questions.are_answered && !questions.ask("Write this?", output) {
        let exit = if questions.is_terminal { Exit::No } else { Exit::Denied };
        if exit == Exit::Denied {
            output.error("nothing is written, because you cannot be asked here; add `--yes` to write it");
        }
        return Ok(WriteOutcome { exit, files, is_shown });
    }
    for (change, report) in changes.iter().zip(&mut files) {
        let backup = change.write()?;
        report.written = !change.is_unchanged();
        report.backup = backup.map(|path| path.display().to_string());
    }
    Ok(WriteOutcome { exit: Exit::Done, files, is_shown })
}

/// The kuberc to write: a given file, or the one that the environment names.
pub(crate) fn kuberc(file: Option<&Path>, environment: &Environment) -> Result<KubercChanges, Failure> {
    let file = file.map(|file| environment.current_dir.join(file));
    let (variable, feature) = (environment.variable("KUBERC"), environment.variable("KUBECTL_KUBERC"));
    let location = KubercLocation {
        flag: file.as_deref(),
        variable: variable.as_deref(),
        feature: feature.as_deref(),
        home: environment.home.as_deref(),
    };
    let source = KubercSource::locate(location)
        .map_err(|error| Failure::Message { exit: Exit::Usage, text: error_chain(&error) })?;
    Ok(KubercChanges::load(&source)?)
}

/// Warns which plugins in use the change forbids, and offers to add those that the list does not have.
pub(crate) fn offer_plugins_in_use(
    changes: &mut KubercChanges,
    kubeconfig: &MergedKubeconfig,
    is_requested: bool,
    questions: Questions,
    (environment, output): (&Environment, &mut Output),
) -> Result<Vec<ForbiddenPluginReport>, Failure> {
    if changes.starts_allowlist() {
        output.warning("`credentialPluginPolicy: Allowlist` forbids every plugin that is not in the list");
    }
    let denied = changes.newly_denied(kubeconfig, &environment.inherited)?;
    // A second entry of a listed program would permit what its first entry was written to forbid.
    let (listed, unlisted): (Vec<UsedPlugin>, Vec<UsedPlugin>) =
        denied.into_iter().partition(|plugin| plugin.is_listed);
    if !listed.is_empty() {
        let text =
            "forbidden from now on, because the new entry does not permit their arguments or variables:";
        output.warning(&format!("{text}\n{}", lines(&listed).trim_end()));
    }
    let question =
        || format!("These plugins of the kubeconfig would be forbidden:\n{}Add them too?", lines(&unlisted));
    let adds =
        is_requested || !unlisted.is_empty() && !questions.are_answered && questions.ask(&question(), output);
    if !unlisted.is_empty() && !adds {
        let text = "forbidden from now on, unless you add `--add-plugins-in-use`:";
        output.warning(&format!("{text}\n{}", lines(&unlisted).trim_end()));
    }
    for plugin in unlisted.iter().filter(|_| adds) {
        changes.allow(&plugin.to_allowed(), false)?;
    }
    let report = |plugin: UsedPlugin| ForbiddenPluginReport {
        added: adds && !plugin.is_listed,
        command: plugin.command,
        users: plugin.users,
    };
    Ok(listed.into_iter().chain(unlisted).map(report).collect())
}

/// One line per plugin, with its users.
fn lines(plugins: &[UsedPlugin]) -> String {
    let line = |plugin: &UsedPlugin| {
        format!("  {} (user {})\n", redact::line(&plugin.command), redact::line(&plugin.users.join(", ")))
    };
    plugins.iter().map(line).collect()
}

impl From<FileEditError> for Failure {
    fn from(error: FileEditError) -> Self {
        let exit = match error.class() {
            FileEditErrorClass::Conflict => Exit::No,
            FileEditErrorClass::Denied => Exit::Denied,
            _ => Exit::BadInput,
        };
        Failure::Message { exit, text: error_chain(&error) }
    }
}
