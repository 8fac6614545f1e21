//! Checks the plugin: installation, policy, output and versions.

use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::resolve::resolve;
use navicert_plugin::{Command, Policy, PolicyDenial, ResolveError, Stderr, start};
use navicert_types::error_chain;
use navicert_types::exec_credential::{DecodeError, ExecVersion};
use navicert_types::kubeconfig::InteractiveMode;
use navicert_types::tree::{Node, Syntax, parse};

use super::DoctorInputs;
use super::kubeconfig::quoted;
use super::login::{self, LoginFacts};
use super::report::{DoctorStep, ReportBuilder};
use super::signer;
use crate::credential::{Credential, CredentialSource};
use crate::exec::interactive::decide;
use crate::exec::response::PluginOutputError;
use crate::exec::{Authenticator, ExecError, Plugin, PluginPolicy};
use crate::json::member;
use crate::kubeconfig::Effective;
use crate::kuberc::KubercError;

/// How often a plugin that is still running is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of `kubectl version`.
const KUBECTL_TIMEOUT: Duration = Duration::from_secs(10);

/// The credential and its source.
pub(super) struct ObtainedCredential {
    pub(super) source: Arc<dyn CredentialSource>,
    pub(super) credential: Arc<Credential>,
    pub(super) from_plugin: bool,
}

/// Obtains the credential. Runs a plugin only if the server is reachable, to avoid a useless login.
pub(super) async fn obtain_credential(
    inputs: &DoctorInputs,
    effective: &Effective,
    reached: bool,
    report: &mut ReportBuilder<'_>,
) -> Option<ObtainedCredential> {
    let source = inputs.config.credential.source(&inputs.exec, &inputs.client_context);
    let Some(plugin) = used_plugin(inputs, effective) else {
        return signer::obtain(inputs, effective, source, reached, report).await;
    };
    let authenticator = Authenticator::new(plugin, inputs.exec.clone(), inputs.client_context.clone());
    let may_run = check_installed(inputs, authenticator.plugin(), report)
        & check_policy(inputs, &authenticator, report);
    let login = login::check_plugin(inputs, report).await;
    if !may_run || !reached {
        let text = if may_run { report.skip_reason() } else { "not run".to_owned() };
        report.skip(DoctorStep::Run, text);
        check_versions(inputs, authenticator.plugin(), None, report).await;
        return None;
    }
    let ran = run_with_progress(inputs, effective, &authenticator, report).await;
    let mismatch = match &ran {
        Ok(credential) => {
            report.pass(DoctorStep::Run, describe_credential(credential));
            None
        }
        Err(ExecError::Response(error)) if version_mismatch(error).is_some() => {
            report.pass(DoctorStep::Run, "the plugin returned a response");
            version_mismatch(error)
        }
        Err(error) => {
            let command = login.as_ref().and_then(LoginFacts::needed_command);
            let log_in = command.map(|command| format!("log in: {command}"));
            let to_do = log_in.unwrap_or_else(|| run_to_do(error, authenticator.plugin()));
            report.fail(DoctorStep::Run, error_chain(error), to_do);
            None
        }
    };
    check_versions(inputs, authenticator.plugin(), mismatch, report).await;
    ran.ok().map(|credential| ObtainedCredential { source, credential, from_plugin: true })
}

/// Runs the plugin and reports every second that it is still running.
async fn run_with_progress(
    inputs: &DoctorInputs,
    effective: &Effective,
    authenticator: &Authenticator,
    report: &mut ReportBuilder<'_>,
) -> Result<Arc<Credential>, ExecError> {
    let exec = effective.user.exec.as_ref();
    let command = exec.map(|exec| short_command(&exec.command, &exec.args)).unwrap_or_default();
    let mode = exec.map_or(&InteractiveMode::Never, |exec| &exec.interactive_mode);
    let interactive = decide(mode, &*inputs.client_context.terminal, &inputs.exec.stdin).unwrap_or(false);
    let mut run = std::pin::pin!(authenticator.refresh());
    let mut elapsed = Duration::ZERO;
    loop {
        match tokio::time::timeout(PROGRESS_INTERVAL, &mut run).await {
            Ok(outcome) => return outcome,
            Err(_) => elapsed += PROGRESS_INTERVAL,
        }
        report.plugin_running(&command, elapsed, interactive);
    }
}

/// The command with its subcommands: options may hold secrets.
fn short_command(command: &str, args: &[String]) -> String {
    let subcommands = args.iter().map(String::as_str).take_while(|arg| !arg.starts_with('-'));
    let words: Vec<&str> = std::iter::once(command).chain(subcommands).collect();
    navicert_types::redact::line(&words.join(" ")).into_owned()
}

/// The plugin, unless a static credential takes precedence.
// C167
fn used_plugin(inputs: &DoctorInputs, effective: &Effective) -> Option<Plugin> {
    let user = &effective.user;
    let is_static = !user.token.is_empty()
        || !user.token_file.is_empty()
        || !user.username.is_empty()
        || !user.client_certificate.is_empty()
        || !user.client_certificate_data.is_empty();
    if is_static {
        None
    } else {
        Plugin::from_effective(effective, &*inputs.client_context.files).ok().flatten()
    }
}

fn check_installed(inputs: &DoctorInputs, plugin: &Plugin, report: &mut ReportBuilder<'_>) -> bool {
    let path = inputs.client_context.environment.variable("PATH");
    match resolve(plugin.command().as_ref(), path) {
        Ok(found) => {
            report.pass(DoctorStep::Plugin, quoted(&found.display().to_string()));
            true
        }
        Err(error) => {
            let hint: Vec<&str> = plugin.install_hint().split_whitespace().collect();
            let to_do = match &error {
                ResolveError::NotExecutable { path, .. } => {
                    format!("make {} executable", quoted(&path.display().to_string()))
                }
                _ if !hint.is_empty() => format!("install the plugin: {}", hint.join(" ")),
                ResolveError::NotInPath { command } => {
                    format!("install the plugin {}, or add its directory to PATH", quoted(command))
                }
                _ => format!("install the plugin {}", quoted(plugin.command())),
            };
            report.fail(DoctorStep::Plugin, error_chain(&error), to_do);
            false
        }
    }
}

fn check_policy(
    inputs: &DoctorInputs,
    authenticator: &Authenticator,
    report: &mut ReportBuilder<'_>,
) -> bool {
    match authenticator.check_policy() {
        Err(error) if error.is_denied() => {
            report.fail(DoctorStep::Policy, error_chain(&error), policy_to_do(&error));
            false
        }
        // The previous step has reported the missing program.
        Err(_) => {
            report.skip(DoctorStep::Policy, "the plugin is missing");
            false
        }
        Ok(()) => {
            let open = matches!(&inputs.client_context.policy, PluginPolicy::Policy(policy) if matches!(**policy, Policy::AllowAll));
            report.pass(
                DoctorStep::Policy,
                if open { "no kuberc restricts plugins" } else { "permitted by the kuberc" },
            );
            true
        }
    }
}

fn policy_to_do(error: &ExecError) -> String {
    match error {
        ExecError::Denied(PolicyDenial::DenyAll { command }) => {
            format!("permit {} in the kuberc: its credentialPluginPolicy is DenyAll", quoted(command))
        }
        ExecError::Denied(PolicyDenial::NotListed { path }) => {
            format!("add `- command: {path}` to credentialPluginAllowlist in the kuberc")
        }
        ExecError::Denied(PolicyDenial::Digest { path, actual }) => {
            format!("if {} was updated intentionally, set `sha256: {actual}` in the kuberc", quoted(path))
        }
        ExecError::Denied(denial @ PolicyDenial::Variables(denied)) => format!(
            "if every kubeconfig may set it, write `{}` in the kuberc's entry `command: {}`",
            denial.line_to_write().unwrap_or_default(),
            denied.entry
        ),
        ExecError::Denied(PolicyDenial::Replaceable { path, .. }) => {
            format!("move {} to a directory that only root can change, or remove its `sha256`", quoted(path))
        }
        ExecError::Denied(PolicyDenial::CannotResolve { source, .. }) => {
            format!("install the plugin: {source}")
        }
        ExecError::PolicyUnreadable { policy, .. } => kuberc_to_do(policy),
        other => format!("change the kuberc's allowlist: {other}"),
    }
}

/// How to fix a kuberc that cannot be read.
pub(super) fn kuberc_to_do(error: &KubercError) -> String {
    match error {
        KubercError::Invalid { path, diagnostics } => {
            let line = diagnostics.iter().next().map_or(1, |first| first.span.line);
            format!("fix line {line} of {}; no plugin may run until then", quoted(path))
        }
        KubercError::Unreadable { path, .. } => {
            format!("make {} readable; no plugin may run until then", quoted(path))
        }
        KubercError::FlagWhileOff => "remove `--kuberc` or `KUBERC=off`".to_owned(),
    }
}

fn describe_credential(credential: &Credential) -> &'static str {
    match (&credential.authorization, &credential.identity) {
        (Some(_), Some(_)) => "returned a token and a certificate",
        (None, Some(_)) => "returned a certificate",
        _ => "returned a token",
    }
}

fn run_to_do(error: &ExecError, plugin: &Plugin) -> String {
    let command = quoted(plugin.command());
    match error {
        ExecError::Interactive(_) => "run this in a terminal: the plugin must prompt the user".to_owned(),
        ExecError::Failed { message: Some(message), .. } => {
            format!("follow the message of {command}: {message}")
        }
        ExecError::Failed { .. } => {
            format!("log in again with {command}, or follow its message on standard error")
        }
        ExecError::TimedOut { .. } => format!("run {command} by hand and check what it waits for"),
        ExecError::Response(_) => {
            format!("update {command}; `navicert exec-plugin check` names the rule it breaks")
        }
        _ => format!("fix {command}: it cannot be run"),
    }
}

/// Text and fix for a version mismatch.
fn version_mismatch(error: &PluginOutputError) -> Option<(String, String)> {
    match error {
        PluginOutputError::OtherVersion { returned, .. } => {
            Some((error.to_string(), format!("set `apiVersion: {returned}` in the user's exec section")))
        }
        PluginOutputError::Undecodable(decode) => match &**decode {
            DecodeError::NotRegistered { api_version, .. } => Some((
                format!("the plugin responds in version `{api_version}`"),
                "update the plugin: clients no longer support its version".to_owned(),
            )),
            _ => None,
        },
        PluginOutputError::NoVersion => {
            Some((error.to_string(), "update the plugin: its output has no apiVersion".to_owned()))
        }
        _ => None,
    }
}

/// Compares the kubeconfig's version with the plugin's and kubectl's.
async fn check_versions(
    inputs: &DoctorInputs,
    plugin: &Plugin,
    mismatch: Option<(String, String)>,
    report: &mut ReportBuilder<'_>,
) {
    let version = plugin.version();
    if let Some((text, to_do)) = mismatch {
        return report.fail(DoctorStep::Versions, text, to_do);
    }
    let Some(kubectl) = kubectl_version(inputs).await else {
        return report.pass(DoctorStep::Versions, format!("{version}; no kubectl in PATH to compare with"));
    };
    let text = &kubectl.text;
    if version == ExecVersion::V1 && (kubectl.major, kubectl.minor) < (1, 22) {
        let found = format!("kubectl {text} does not support {version}; 1.22 and newer do");
        let to_do = "update kubectl, or use client.authentication.k8s.io/v1beta1 if the plugin supports it";
        return report.warn(DoctorStep::Versions, found, to_do);
    }
    report.pass(DoctorStep::Versions, format!("{version}, also supported by kubectl {text}"));
}

struct KubectlVersion {
    major: u32,
    minor: u32,
    text: String,
}

/// The version of the kubectl in `PATH`, if available.
async fn kubectl_version(inputs: &DoctorInputs) -> Option<KubectlVersion> {
    let command = Command::new("kubectl", inputs.client_context.environment.clone())
        .args(["version", "--client", "-o", "json"])
        .stderr(Stderr::Tail(1024))
        .limit(Some(KUBECTL_TIMEOUT));
    let permitted = Policy::AllowAll.permit(command).ok()?;
    let completed = start(Arc::clone(&inputs.client_context.runner), permitted).await.ok()?;
    let node = parse(completed.stdout.expose(), Syntax::Json).ok()?;
    let version = member(&node, "clientVersion")?;
    let text = |name: &str| member(version, name).and_then(Node::as_str);
    // Some builds write `20+`.
    let number = |name: &str| text(name)?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    let git = navicert_types::redact::line(text("gitVersion")?).into_owned();
    Some(KubectlVersion { major: number("major")?, minor: number("minor")?, text: git })
}
