//! Builds the plugin's input and command.
// §2.2, §3.1

use navicert_plugin::{Command, ProcessGroup, Stdin};
use navicert_types::exec_credential::{ExecCredential, ExecCredentialSpec, INFO_VARIABLE, ServerResponse};
use navicert_types::{Secret, redact};

use super::error::ExecError;
use super::plugin::Plugin;
use super::settings::ExecSettings;
use crate::context::ClientContext;
use crate::credential::RejectedResponse;

/// The maximum length of one environment string on Linux: name, `=`, value and the terminating NUL.
// C215
pub(super) const MAX_VARIABLE_BYTES: usize = 131_072;

impl Plugin {
    /// The exact value of `KUBERNETES_EXEC_INFO`.
    ///
    /// # Errors
    /// The value does not fit into an environment variable.
    // C210, C215
    pub fn exec_info(&self, interactive: bool) -> Result<Secret<String>, ExecError> {
        self.exec_info_after(interactive, None)
    }

    /// The same; v1alpha1 also contains the server response that required a new credential.
    // C202
    pub(super) fn exec_info_after(
        &self,
        interactive: bool,
        rejected: Option<&RejectedResponse>,
    ) -> Result<Secret<String>, ExecError> {
        let spec = ExecCredentialSpec {
            cluster: self.cluster.clone(),
            interactive,
            response: rejected.map(server_response),
        };
        let exec_info = ExecCredential { spec, status: None }.to_request_json(self.version);
        let bytes = INFO_VARIABLE.len() + 1 + exec_info.expose().len() + 1;
        if bytes > MAX_VARIABLE_BYTES {
            let authority =
                self.cluster.as_ref().map_or(0, |cluster| cluster.certificate_authority_data.len());
            let command = self.display_command();
            return Err(ExecError::ExecInfoTooLong { command, bytes, limit: MAX_VARIABLE_BYTES, authority });
        }
        Ok(exec_info)
    }

    /// The command as client-go's messages print it.
    // C325
    pub(super) fn display_command(&self) -> String {
        let cleaned = navicert_plugin::resolve::clean_command(self.command.as_ref());
        redact::terminal(&cleaned.to_string_lossy()).into_owned()
    }

    /// The command with its environment: inherited variables, then the kubeconfig's, then `KUBERNETES_EXEC_INFO`, which
    /// neither can override.
    // C303
    pub(super) fn to_command(
        &self,
        interactive: bool,
        exec_info: &Secret<String>,
        settings: &ExecSettings,
        client_context: &ClientContext,
    ) -> Command {
        let mut command = Command::new(self.command.as_str(), client_context.environment.clone())
            .args(&self.args)
            .stdin(if interactive { Stdin::Inherit } else { Stdin::Null })
            .stdout_cap(settings.stdout_cap)
            .stderr(settings.stderr.clone())
            .limit(if interactive { settings.interactive_timeout } else { settings.timeout })
            .grace(settings.grace)
            .eof_wait(settings.eof_wait);
        // C308: a client with a controlling terminal keeps plugins in its own process group.
        let group = if client_context.terminal.has_controlling_terminal() {
            ProcessGroup::Inherit
        } else {
            ProcessGroup::New
        };
        command = command.process_group(group);
        for name in &settings.drop_env {
            command = command.drop_env(name);
        }
        for (name, value) in &self.env {
            command = command.env(name, value.expose());
        }
        command.protocol_env(INFO_VARIABLE, exec_info.expose())
    }
}

fn server_response(rejected: &RejectedResponse) -> ServerResponse {
    let mut header: Vec<(String, Vec<String>)> = Vec::new();
    for name in rejected.headers.keys() {
        let values = rejected.headers.get_all(name).iter();
        let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        header.push((canonical(name.as_str()), values));
    }
    ServerResponse { header, code: i32::from(rejected.status.as_u16()) }
}

/// A header name as Go writes it: `Www-Authenticate`.
fn canonical(name: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}
