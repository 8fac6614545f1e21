//! The plugin: is it there, may it run, what does it give, and do all speak the same version.

use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::resolve::resolve;
use navicert_plugin::{Command, Policy, Refusal, ResolveError, Stderr, start};
use navicert_types::exec_credential::{DecodeError, Version};
use navicert_types::tree::{Node, Syntax, parse};

use super::Patient;
use super::kubeconfig::shown;
use super::report::{Step, Walk};
use crate::credential::{Asking, Credential, CredentialSource, choose};
use crate::exec::response::ResponseError;
use crate::exec::{Authenticator, ExecError, Plugin, PluginPolicy};
use crate::kubeconfig::Effective;
use crate::kuberc::KubercError;
use crate::whoami::member;

/// How long kubectl may take to say its version.
const KUBECTL: Duration = Duration::from_secs(10);

/// What there is to show the server, and where it came from.
pub(super) struct Held {
    pub(super) source: Arc<dyn CredentialSource>,
    pub(super) credential: Arc<Credential>,
    pub(super) from_plugin: bool,
}

/// Gets the credential. A plugin is run only if the server can be reached: a login for nothing helps nobody.
pub(super) async fn credential(
    patient: &Patient,
    effective: &Effective,
    reached: bool,
    walk: &mut Walk<'_>,
) -> Option<Held> {
    let source = match choose(effective, &patient.files, &patient.exec, &patient.around) {
        Ok(source) => source,
        Err(error) => {
            let user = shown(&effective.user_name);
            walk.fail(Step::Plugin, error.to_string(), format!("correct user {user}: {error}"));
            walk.skip_until(Step::Expiry);
            return None;
        }
    };
    let Some(plugin) = used_plugin(patient, effective) else {
        for step in [Step::Plugin, Step::Policy, Step::Run, Step::Versions] {
            walk.skip(step, "no exec plugin is used");
        }
        let credential = source.current(Asking::Foreground).await.ok()?;
        return Some(Held { source, credential, from_plugin: false });
    };
    let authenticator = Authenticator::new(plugin, patient.exec.clone(), patient.around.clone());
    let may_run = is_there(patient, authenticator.plugin(), walk) & may_run(patient, &authenticator, walk);
    if !may_run || !reached {
        let text = if reached { "not run" } else { "not run: the server cannot be reached anyway" };
        walk.skip(Step::Run, text);
        versions(patient, authenticator.plugin(), None, walk).await;
        return None;
    }
    let ran = authenticator.refresh().await;
    let mismatch = match &ran {
        Ok(credential) => {
            walk.pass(Step::Run, gave(credential));
            None
        }
        Err(ExecError::Response(error)) if version_trouble(error).is_some() => {
            walk.pass(Step::Run, "it answered");
            version_trouble(error)
        }
        Err(error) => {
            walk.fail(Step::Run, error.to_string(), run_to_do(error, authenticator.plugin()));
            None
        }
    };
    versions(patient, authenticator.plugin(), mismatch, walk).await;
    // The two share what was got (C404).
    ran.ok().map(|credential| Held { source, credential, from_plugin: true })
}

/// The plugin, if nothing keeps it out (C167).
fn used_plugin(patient: &Patient, effective: &Effective) -> Option<Plugin> {
    let user = &effective.user;
    let is_static = !user.token.is_empty()
        || !user.token_file.is_empty()
        || !user.username.is_empty()
        || !user.client_certificate.is_empty()
        || !user.client_certificate_data.is_empty();
    if is_static { None } else { Plugin::of(effective, &*patient.files).ok().flatten() }
}

fn is_there(patient: &Patient, plugin: &Plugin, walk: &mut Walk<'_>) -> bool {
    let path = patient.around.environment.variable("PATH");
    match resolve(plugin.command().as_ref(), path) {
        Ok(found) => {
            walk.pass(Step::Plugin, shown(&found.display().to_string()));
            true
        }
        Err(error) => {
            let hint: Vec<&str> = plugin.install_hint().split_whitespace().collect();
            let to_do = match &error {
                ResolveError::NotExecutable { path, .. } => {
                    format!("make {} executable", shown(&path.display().to_string()))
                }
                _ if !hint.is_empty() => format!("install the plugin: {}", hint.join(" ")),
                ResolveError::NotInPath { command } => {
                    format!("install the plugin {}, or put its folder into PATH", shown(command))
                }
                _ => format!("install the plugin {}", shown(plugin.command())),
            };
            walk.fail(Step::Plugin, error.to_string(), to_do);
            false
        }
    }
}

fn may_run(patient: &Patient, authenticator: &Authenticator, walk: &mut Walk<'_>) -> bool {
    match authenticator.check_policy() {
        Err(error) if error.is_denied() => {
            walk.fail(Step::Policy, error.to_string(), policy_to_do(&error));
            false
        }
        // That there is no such program was said one step before.
        Err(_) => {
            walk.skip(Step::Policy, "there is nothing to run");
            false
        }
        Ok(()) => {
            let open = matches!(&patient.around.policy, PluginPolicy::Policy(policy) if matches!(**policy, Policy::AllowAll));
            walk.pass(
                Step::Policy,
                if open { "no kuberc restricts plugins" } else { "the kuberc permits it" },
            );
            true
        }
    }
}

fn policy_to_do(error: &ExecError) -> String {
    match error {
        ExecError::Denied(Refusal::DenyAll { command }) => {
            format!("permit {} in the kuberc: its credentialPluginPolicy is DenyAll", shown(command))
        }
        ExecError::Denied(Refusal::NotListed { path }) => {
            format!("add `- command: {path}` to credentialPluginAllowlist in the kuberc")
        }
        ExecError::Denied(Refusal::Digest { path, actual }) => {
            format!("if {} was updated on purpose, put `sha256: {actual}` into the kuberc", shown(path))
        }
        ExecError::Denied(Refusal::CannotResolve { source, .. }) => format!("install the plugin: {source}"),
        ExecError::PolicyUnreadable { policy, .. } => match &**policy {
            KubercError::Invalid { path, diagnostics } => {
                let line = diagnostics.iter().next().map_or(1, |first| first.span.line);
                format!("mend line {line} of {}: no plugin runs before", shown(path))
            }
            KubercError::Unreadable { path, .. } => {
                format!("make {} readable: no plugin runs before", shown(path))
            }
            KubercError::FlagWhileOff => "take `--kuberc` away, or `KUBERC=off`".to_owned(),
        },
        other => format!("change the kuberc's allowlist: {other}"),
    }
}

fn gave(credential: &Credential) -> &'static str {
    match (&credential.authorization, &credential.identity) {
        (Some(_), Some(_)) => "gave a token and a certificate",
        (None, Some(_)) => "gave a certificate",
        _ => "gave a token",
    }
}

fn run_to_do(error: &ExecError, plugin: &Plugin) -> String {
    let command = shown(plugin.command());
    match error {
        ExecError::Interactive(_) => "run this in a terminal: the plugin has to ask its user".to_owned(),
        ExecError::Failed { message: Some(message), .. } => format!("do what {command} says: {message}"),
        ExecError::Failed { .. } => {
            format!("log in with {command} again, or do what it says on standard error")
        }
        ExecError::TimedOut { .. } => format!("find out what {command} waits for: run it by hand"),
        ExecError::Response(_) => {
            format!("update {command}; `navicert exec-plugin check` names the rule it breaks")
        }
        _ => format!("repair {command}: it cannot be run"),
    }
}

/// What the kubeconfig has to say, or whose fault it is, when versions differ.
fn version_trouble(error: &ResponseError) -> Option<(String, String)> {
    match error {
        ResponseError::OtherVersion { returned, .. } => {
            Some((error.to_string(), format!("set `apiVersion: {returned}` in the user's exec section")))
        }
        ResponseError::Undecodable(decode) => match &**decode {
            DecodeError::NotRegistered { api_version, .. } => Some((
                format!("the plugin answers in `{api_version}`"),
                "update the plugin: clients no longer speak its version".to_owned(),
            )),
            _ => None,
        },
        ResponseError::NoVersion => {
            Some((error.to_string(), "update the plugin: it does not say which version it speaks".to_owned()))
        }
        _ => None,
    }
}

/// The kubeconfig's version against the plugin's and kubectl's.
async fn versions(
    patient: &Patient,
    plugin: &Plugin,
    mismatch: Option<(String, String)>,
    walk: &mut Walk<'_>,
) {
    let asked = plugin.version();
    if let Some((text, to_do)) = mismatch {
        return walk.fail(Step::Versions, text, to_do);
    }
    let Some(kubectl) = kubectl(patient).await else {
        return walk.pass(Step::Versions, format!("{asked}; there is no kubectl here to compare with"));
    };
    let text = &kubectl.text;
    if asked == Version::V1 && (kubectl.major, kubectl.minor) < (1, 22) {
        let seen = format!("kubectl {text} does not know {asked}; 1.22 and newer do");
        let to_do = "update kubectl, or use client.authentication.k8s.io/v1beta1 if the plugin speaks it";
        return walk.warn(Step::Versions, seen, to_do);
    }
    walk.pass(Step::Versions, format!("{asked}, which kubectl {text} speaks too"));
}

struct Kubectl {
    major: u32,
    minor: u32,
    text: String,
}

/// The kubectl that a shell would run here, if it says its version.
async fn kubectl(patient: &Patient) -> Option<Kubectl> {
    let command = Command::new("kubectl", patient.around.environment.clone())
        .args(["version", "--client", "-o", "json"])
        .stderr(Stderr::Tail(1024))
        .limit(Some(KUBECTL));
    let permitted = Policy::AllowAll.permit(command).ok()?;
    let completed = start(Arc::clone(&patient.around.runner), permitted).await.ok()?;
    let node = parse(completed.stdout.expose(), Syntax::Json).ok()?;
    let version = member(&node, "clientVersion")?;
    let text = |name: &str| member(version, name).and_then(Node::as_str);
    // Some builds write `20+`.
    let number = |name: &str| text(name)?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    let git = navicert_types::redact::terminal(text("gitVersion")?).into_owned();
    Some(Kubectl { major: number("major")?, minor: number("minor")?, text: git })
}
