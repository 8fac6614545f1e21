//! The first half of a run: what the plugin is told, and the command that tells it (client-credentials.md §2.2, §3.1).

use navicert_plugin::{Command, ProcessGroup, Stdin};
use navicert_types::exec_credential::{ExecCredential, INFO_VARIABLE, Response, Spec};
use navicert_types::{Secret, redact};

use super::error::ExecError;
use super::plugin::Plugin;
use super::settings::{Settings, Surroundings};
use crate::credential::Answer;

/// The longest string Linux takes into an environment: name, `=`, value and the terminating NUL (C215).
pub(super) const LONGEST_VARIABLE: usize = 131_072;

impl Plugin {
    /// What the plugin is told: the value of `KUBERNETES_EXEC_INFO`, to the byte (C210).
    ///
    /// # Errors
    /// It does not fit into an environment (C215).
    pub fn question(&self, interactive: bool) -> Result<Secret<String>, ExecError> {
        self.question_after(interactive, None)
    }

    /// The same; v1alpha1 is also told which answer made a new credential necessary (C202).
    pub(super) fn question_after(
        &self,
        interactive: bool,
        answer: Option<&Answer>,
    ) -> Result<Secret<String>, ExecError> {
        let spec = Spec { cluster: self.cluster.clone(), interactive, response: answer.map(response) };
        let question = ExecCredential { spec, status: None }.question(self.version);
        let bytes = INFO_VARIABLE.len() + 1 + question.expose().len() + 1;
        if bytes > LONGEST_VARIABLE {
            let authority =
                self.cluster.as_ref().map_or(0, |cluster| cluster.certificate_authority_data.len());
            let command = self.shown_command();
            return Err(ExecError::QuestionTooLong { command, bytes, most: LONGEST_VARIABLE, authority });
        }
        Ok(question)
    }

    /// The command as upstream's messages have it (C325).
    pub(super) fn shown_command(&self) -> String {
        let cleaned = navicert_plugin::resolve::clean_command(self.command.as_ref());
        redact::terminal(&cleaned.to_string_lossy()).into_owned()
    }

    /// The command that tells it: the inherited environment, then the kubeconfig's, then the question, which nothing
    /// can override (C303).
    pub(super) fn to_command(
        &self,
        interactive: bool,
        question: &Secret<String>,
        settings: &Settings,
        around: &Surroundings,
    ) -> Command {
        let mut command = Command::new(self.command.as_str(), around.environment.clone())
            .args(&self.args)
            .stdin(if interactive { Stdin::Inherit } else { Stdin::Null })
            .stdout_cap(settings.stdout_cap)
            .stderr(settings.stderr.clone())
            .limit(if interactive { settings.interactive_limit } else { settings.limit })
            .grace(settings.grace)
            .eof_wait(settings.eof_wait);
        // C308: a client on a terminal keeps its plugins in its own group.
        let group = if around.terminal.is_controlling() { ProcessGroup::Inherit } else { ProcessGroup::New };
        command = command.process_group(group);
        for name in &settings.drop_env {
            command = command.drop_env(name);
        }
        for (name, value) in &self.env {
            command = command.env(name, value.expose());
        }
        command.env(INFO_VARIABLE, question.expose())
    }
}

fn response(answer: &Answer) -> Response {
    let mut header: Vec<(String, Vec<String>)> = Vec::new();
    for name in answer.headers.keys() {
        let values = answer.headers.get_all(name).iter();
        let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        header.push((canonical(name.as_str()), values));
    }
    Response { header, code: i32::from(answer.status.as_u16()) }
}

/// A header's name as Go writes it: `Www-Authenticate`.
fn canonical(name: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}
