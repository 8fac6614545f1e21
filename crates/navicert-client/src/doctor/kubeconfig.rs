//! The first five steps: what the files say, before anybody is asked anything.

use navicert_types::redact;

use super::Patient;
use super::report::{Step, Walk};
use crate::in_cluster;
use crate::kubeconfig::{
    Advice, Effective, FileError, FileErrorReason, Loaded, Merged, Obstacle, Problem, Sources, load,
};

/// From files to what was selected; `None` if there is nothing to go on with.
pub(super) fn read(patient: &Patient, walk: &mut Walk<'_>) -> Option<Effective> {
    let loaded = match load(&patient.sources, &patient.current_dir, &*patient.files) {
        Ok(loaded) => loaded,
        Err(errors) => {
            broken_file(errors.first()?, walk);
            return None;
        }
    };
    if loaded.files.is_empty() {
        return pod(patient, &loaded, walk);
    }
    files(&loaded, walk);
    let merged = Merged::new(loaded);
    let effective = match merged.selection(&patient.overrides) {
        Ok(effective) => effective,
        Err(problem) => {
            let step = step_of_problem(&problem);
            if step != Step::Context {
                context(&merged, patient, walk);
            }
            if step == Step::User {
                walk.skip(Step::Cluster, "not selected, because the user does not exist");
            }
            wrong_problem(step, &problem, &merged, walk);
            return None;
        }
    };
    judge(patient, &merged, effective, walk)
}

/// Context, cluster, user and authority.
fn judge(patient: &Patient, merged: &Merged, effective: Effective, walk: &mut Walk<'_>) -> Option<Effective> {
    let problems = merged.select(&patient.overrides, &*patient.files).err().unwrap_or_default();
    let at = |step| problems.iter().find(move |problem| step_of_problem(problem) == step);
    match (at(Step::Context), &effective.context) {
        (Some(problem), _) => {
            wrong_problem(Step::Context, problem, merged, walk);
            return None;
        }
        (None, Some(name)) => walk.pass(Step::Context, shown(name)),
        (None, None) => {
            walk.fail(Step::Context, "none is selected", choose_one(merged));
            return None;
        }
    }
    let obstacles = effective.obstacles(&*patient.files);
    let advice = effective.advice();
    for step in [Step::Cluster, Step::User, Step::Authority] {
        if let Some(problem) = at(step) {
            wrong_problem(step, problem, merged, walk);
        } else if let Some(obstacle) = obstacles.iter().find(|found| step_of_obstacle(found) == step) {
            let to_do =
                obstacle.way_out().map_or_else(|| obstacle_to_do(obstacle, &effective), ToOwned::to_owned);
            walk.fail(step, obstacle.to_string(), to_do);
        } else if let Some(advice) = advice.iter().find(|found| step_of_advice(found) == step) {
            walk.warn(step, advice.to_string(), advice_to_do(advice, &effective));
        } else {
            walk.pass(step, good(step, &effective));
        }
        if walk.has_failed() && step == Step::Cluster {
            return None;
        }
    }
    (!walk.has_failed()).then_some(effective)
}

fn files(loaded: &Loaded, walk: &mut Walk<'_>) {
    let names = |paths: Vec<String>| paths.join(", ");
    let read = names(loaded.files.iter().map(|file| shown(&file.path.display().to_string())).collect());
    if loaded.missing.is_empty() {
        walk.pass(Step::File, read);
    } else {
        let missing = names(loaded.missing.iter().map(|path| shown(&path.display().to_string())).collect());
        walk.warn(
            Step::File,
            format!("{read}; KUBECONFIG also names what does not exist: {missing}"),
            format!("take {missing} out of KUBECONFIG"),
        );
    }
}

fn broken_file(error: &FileError, walk: &mut Walk<'_>) {
    let file = shown(&error.path.display().to_string());
    let (text, to_do) = match &error.reason {
        FileErrorReason::Unreadable(cause) => {
            (format!("{file}: {cause}"), format!("name a kubeconfig that can be read instead of {file}"))
        }
        FileErrorReason::Undecodable { diagnostics, .. } => {
            let line = diagnostics.iter().next().map_or(1, |first| first.span.line);
            (format!("{file}: {diagnostics}"), format!("mend line {line} of {file}"))
        }
    };
    walk.fail(Step::File, text, to_do);
}

/// Without a kubeconfig this may be a pod (C190).
fn pod(patient: &Patient, loaded: &Loaded, walk: &mut Walk<'_>) -> Option<Effective> {
    let Some(effective) = in_cluster::configuration(&patient.pod, &patient.overrides, &*patient.files) else {
        let looked: Vec<String> =
            loaded.missing.iter().map(|path| shown(&path.display().to_string())).collect();
        let text = match (&patient.sources, looked.as_slice()) {
            (Sources::List(_), [_, ..]) => {
                format!("KUBECONFIG names what does not exist: {}", looked.join(", "))
            }
            (_, [one]) => format!("there is no {one}, and KUBECONFIG is not set"),
            _ => "there is no kubeconfig".to_owned(),
        };
        walk.fail(Step::File, text, "name a kubeconfig with KUBECONFIG or --kubeconfig");
        return None;
    };
    walk.pass(Step::File, "no kubeconfig: this is a pod, and its service account is used");
    walk.skip(Step::Context, "a pod has none");
    walk.pass(Step::Cluster, good(Step::Cluster, &effective));
    walk.pass(Step::User, good(Step::User, &effective));
    walk.pass(Step::Authority, good(Step::Authority, &effective));
    Some(effective)
}

fn context(merged: &Merged, patient: &Patient, walk: &mut Walk<'_>) {
    let asked = Some(&patient.overrides.context).filter(|name| !name.is_empty());
    walk.pass(Step::Context, shown(asked.unwrap_or(&merged.config.current_context)));
}

fn wrong_problem(step: Step, problem: &Problem, merged: &Merged, walk: &mut Walk<'_>) {
    let to_do = match problem {
        Problem::NoSuchContext(_) | Problem::ContextNotFound(_) | Problem::NoConfiguration => {
            choose_one(merged)
        }
        Problem::Unreadable { file, field, entry, .. } => {
            format!("put the {field} of {} at {}, or correct the path", shown(entry), shown(file))
        }
        Problem::TokenFile { file, .. } => {
            format!("put a token into {}, or correct the path in `tokenFile`", shown(file))
        }
        other => other.way_out().unwrap_or_else(|| format!("correct the kubeconfig: {other}")),
    };
    walk.fail(step, problem.to_string(), to_do);
}

fn choose_one(merged: &Merged) -> String {
    const MOST: usize = 8;
    let names: Vec<String> = merged.config.contexts.iter().map(|entry| shown(&entry.name)).collect();
    match names.split_at_checked(MOST) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("name a context: {} or one of {} more", first.join(", "), rest.len())
        }
        _ if names.is_empty() => "add a context to the kubeconfig: it has none".to_owned(),
        _ => format!("name a context that exists: {}", names.join(", ")),
    }
}

fn step_of_problem(problem: &Problem) -> Step {
    match problem {
        Problem::NoSuchContext(_) | Problem::ContextNotFound(_) | Problem::NoConfiguration => Step::Context,
        Problem::NoSuchCluster(_)
        | Problem::ClusterNotFound { .. }
        | Problem::NoClusterSelected
        | Problem::NoServer(_)
        | Problem::Proxy { .. } => Step::Cluster,
        Problem::TwoAuthorities(_) | Problem::Unreadable { field: "certificate-authority", .. } => {
            Step::Authority
        }
        _ => Step::User,
    }
}

fn step_of_obstacle(obstacle: &Obstacle) -> Step {
    match obstacle {
        Obstacle::Server { .. } => Step::Cluster,
        Obstacle::AuthorityAndInsecure | Obstacle::NoCertificate("certificate-authority") => Step::Authority,
        _ => Step::User,
    }
}

fn step_of_advice(advice: &Advice) -> Step {
    match advice {
        Advice::PlainHttp(_) | Advice::NoScheme(_) => Step::Cluster,
        Advice::Insecure => Step::Authority,
        _ => Step::User,
    }
}

fn obstacle_to_do(obstacle: &Obstacle, effective: &Effective) -> String {
    let user = shown(&effective.user_name);
    match obstacle {
        Obstacle::Server { .. } => "write the server as https://host:port".to_owned(),
        Obstacle::NoCertificate(field) => format!("put a PEM certificate into `{field}`"),
        Obstacle::NoKey(field) => format!("put a PEM private key into `{field}`"),
        Obstacle::RemovedProvider { instead, .. } => {
            format!("give user {user} an exec plugin (`{instead}`) instead of the auth-provider")
        }
        Obstacle::EmptyTokenFile(file) => format!("put a token into {}", shown(file)),
        other => format!("correct user {user}: {other}"),
    }
}

fn advice_to_do(advice: &Advice, effective: &Effective) -> String {
    let user = shown(&effective.user_name);
    match advice {
        Advice::UserMissing(_) => {
            format!("add an entry named {user} to `users`, or name another in the context")
        }
        Advice::NoUser => "add `user:` to the context".to_owned(),
        Advice::PlainHttp(_) | Advice::NoScheme(_) => {
            "write the server with https://, as credentials are sent nowhere else".to_owned()
        }
        Advice::Insecure => {
            "replace insecure-skip-tls-verify by the cluster's certificate-authority-data".to_owned()
        }
        Advice::KeyIgnored(_) => format!("add the client-certificate that belongs to the key of user {user}"),
        Advice::TokenFileWins(_) => format!("remove `token` or `tokenFile` from user {user}"),
        Advice::ExecUnused(_) => {
            format!("remove the static credential from user {user}: the plugin beside it is never run")
        }
    }
}

/// What there is to see where nothing is wrong.
fn good(step: Step, effective: &Effective) -> String {
    let cluster = &effective.cluster;
    match step {
        Step::User => {
            let mut kinds = effective.credential_kinds();
            kinds.retain(|kind| *kind != "impersonate");
            let kinds = if kinds.is_empty() { "no credential".to_owned() } else { kinds.join(", ") };
            if effective.user_name.is_empty() {
                kinds
            } else {
                format!("{}: {kinds}", shown(&effective.user_name))
            }
        }
        Step::Authority if !effective.is_https() => "not needed over plain http".to_owned(),
        Step::Authority if !cluster.certificate_authority_data.is_empty() => {
            "certificate-authority-data".to_owned()
        }
        Step::Authority if !cluster.certificate_authority.is_empty() => shown(&cluster.certificate_authority),
        Step::Authority => "those of this machine".to_owned(),
        _ => format!("{} at {}", shown(&effective.cluster_name), redact::url(&effective.server())),
    }
}

/// A name from a file, in backticks and safe for a terminal.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", redact::terminal(text))
}
