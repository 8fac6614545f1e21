//! `navicert serve --check`: reads all files without serving.

use std::path::Path;
use std::sync::Arc;

use navicert_authn::config::AuthnReloader;
use navicert_authn::metrics::AuthnMetrics;
use navicert_server::confinement::ConfinementPlan;
use navicert_types::SystemClock;
use serde_json::{Value, json};

use super::shared::{ConfigFiles, EffectiveLimits};
use crate::args::serve::FilesArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Checks the files.
pub(super) fn run(args: &FilesArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let metrics = Arc::new(AuthnMetrics::new("", Arc::new(SystemClock)));
    let reloader = ConfigFiles::read(args, output)?.open(metrics, environment)?;
    report_valid(&reloader, None, output)
}

/// Prints that the configuration is valid, and the limits and the confinement of the server if it is known which one.
pub(super) fn report_valid(
    reloader: &AuthnReloader,
    server: Option<(EffectiveLimits, &ConfinementPlan)>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let issuers: Vec<String> = reloader.authenticator().health().into_iter().map(|(url, _)| url).collect();
    if output.is_json() {
        let mut report = json!({"valid": true, "issuers": issuers});
        if let (Some((limits, confinement)), Some(report)) = (server, report.as_object_mut()) {
            report.insert("limits".to_owned(), limits_json(&limits));
            report.insert("confinement".to_owned(), confinement_json(confinement));
        }
        output.json(&report)?;
        return Ok(Exit::Done);
    }
    let count = issuers.len();
    let told = if count == 1 { "1 issuer".to_owned() } else { format!("{count} issuers") };
    output.text(&format!("ok: {told}\n"))?;
    if let Some((limits, confinement)) = server {
        output.text(&limits_text(&limits))?;
        output.text(&confinement_text(confinement))?;
    }
    Ok(Exit::Done)
}

fn limits_json(effective: &EffectiveLimits) -> Value {
    let EffectiveLimits { limits, memory } = effective;
    json!({
        "connections": limits.connections, "requests": limits.requests, "unfinishedBytes": limits.unfinished_bytes,
        "memoryBytes": memory.map(|memory| memory.bytes), "memorySource": memory.map(|memory| memory.source.name()),
    })
}

fn confinement_json(plan: &ConfinementPlan) -> Value {
    let report = plan.preview();
    json!({
        "noNewPrivileges": report.no_new_privileges.to_string(),
        "landlock": report.landlock.to_string(),
        "seccomp": report.seccomp.to_string(),
        "read": listed(plan.files.readable()),
        "write": listed(plan.files.appendable().chain(plan.files.replaceable())),
    })
}

/// Paths are listed only if they are enforced.
fn confinement_text(plan: &ConfinementPlan) -> String {
    let report = plan.preview();
    let mut text = format!(
        "confinement: no_new_privs {}; landlock {}; seccomp {}\n",
        report.no_new_privileges, report.landlock, report.seccomp
    );
    if report.confines_files() {
        let writable = listed(plan.files.appendable().chain(plan.files.replaceable()));
        for (what, paths) in [("read", listed(plan.files.readable())), ("write", writable)] {
            for path in paths {
                text.push_str(&format!("  {what}: {path}\n"));
            }
        }
    }
    text
}

fn listed<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<String> {
    paths.map(|path| path.display().to_string()).collect()
}

fn limits_text(effective: &EffectiveLimits) -> String {
    let EffectiveLimits { limits, memory } = effective;
    let memory = match memory {
        Some(memory) => format!("memory {} MiB, {}", memory.bytes >> 20, memory.source.name()),
        None => "memory unknown".to_owned(),
    };
    format!(
        "limits: {} connections, {} requests, {} KiB of unfinished requests ({memory})\n",
        limits.connections,
        limits.requests,
        limits.unfinished_bytes >> 10,
    )
}
