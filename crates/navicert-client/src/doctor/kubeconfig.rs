//! The first five steps, which only read files.

use navicert_types::redact;

use super::Patient;
use super::report::{DoctorStep, ReportBuilder};
use crate::in_cluster;
use crate::kubeconfig::{
    Advice, Effective, KubeconfigFileError, KubeconfigFileErrorReason, KubeconfigSources, LoadedKubeconfig,
    MergedKubeconfig, Obstacle, Problem, load,
};

/// Loads the files and selects the context; `None` if the remaining steps cannot run.
pub(super) fn read(patient: &Patient, report: &mut ReportBuilder<'_>) -> Option<Effective> {
    let loaded = match load(&patient.sources, &patient.current_dir, &*patient.files) {
        Ok(loaded) => loaded,
        Err(errors) => {
            report_broken_file(errors.first()?, report);
            return None;
        }
    };
    if loaded.files.is_empty() {
        return in_cluster_configuration(patient, &loaded, report);
    }
    report_files(&loaded, report);
    let merged = MergedKubeconfig::new(loaded);
    let effective = match merged.selection(&patient.overrides) {
        Ok(effective) => effective,
        Err(problem) => {
            let step = step_of_problem(&problem);
            if step != DoctorStep::Context {
                report_context(&merged, patient, report);
            }
            if step == DoctorStep::User {
                report.skip(DoctorStep::Cluster, "skipped because the user does not exist");
            }
            report_problem(step, &problem, &merged, report);
            return None;
        }
    };
    check_selection(patient, &merged, effective, report)
}

/// Checks context, cluster, user and certificate authority.
fn check_selection(
    patient: &Patient,
    merged: &MergedKubeconfig,
    effective: Effective,
    report: &mut ReportBuilder<'_>,
) -> Option<Effective> {
    let problems = merged.select(&patient.overrides, &*patient.files).err().unwrap_or_default();
    let at = |step| problems.iter().find(move |problem| step_of_problem(problem) == step);
    match (at(DoctorStep::Context), &effective.context) {
        (Some(problem), _) => {
            report_problem(DoctorStep::Context, problem, merged, report);
            return None;
        }
        (None, Some(name)) => report.pass(DoctorStep::Context, quoted(name)),
        (None, None) => {
            report.fail(DoctorStep::Context, "no context is selected", suggest_context(merged));
            return None;
        }
    }
    let obstacles = effective.obstacles(&*patient.files);
    let advice = effective.advice();
    for step in [DoctorStep::Cluster, DoctorStep::User, DoctorStep::Authority] {
        if let Some(problem) = at(step) {
            report_problem(step, problem, merged, report);
        } else if let Some(obstacle) = obstacles.iter().find(|found| step_of_obstacle(found) == step) {
            let to_do =
                obstacle.way_out().map_or_else(|| obstacle_to_do(obstacle, &effective), ToOwned::to_owned);
            report.fail(step, obstacle.to_string(), to_do);
        } else if let Some(advice) = advice.iter().find(|found| step_of_advice(found) == step) {
            report.warn(step, advice.to_string(), advice_to_do(advice, &effective));
        } else {
            report.pass(step, describe(step, &effective));
        }
        if report.has_failed() && step == DoctorStep::Cluster {
            return None;
        }
    }
    (!report.has_failed()).then_some(effective)
}

fn report_files(loaded: &LoadedKubeconfig, report: &mut ReportBuilder<'_>) {
    let names = |paths: Vec<String>| paths.join(", ");
    let read = names(loaded.files.iter().map(|file| quoted(&file.path.display().to_string())).collect());
    if loaded.missing.is_empty() {
        report.pass(DoctorStep::File, read);
    } else {
        let missing = names(loaded.missing.iter().map(|path| quoted(&path.display().to_string())).collect());
        report.warn(
            DoctorStep::File,
            format!("{read}; KUBECONFIG also names missing files: {missing}"),
            format!("remove {missing} from KUBECONFIG"),
        );
    }
}

fn report_broken_file(error: &KubeconfigFileError, report: &mut ReportBuilder<'_>) {
    let file = quoted(&error.path.display().to_string());
    let (text, to_do) = match &error.reason {
        KubeconfigFileErrorReason::Unreadable(cause) => {
            (format!("{file}: {cause}"), format!("name a readable kubeconfig instead of {file}"))
        }
        KubeconfigFileErrorReason::Undecodable { diagnostics, .. } => {
            let line = diagnostics.iter().next().map_or(1, |first| first.span.line);
            (format!("{file}: {diagnostics}"), format!("fix line {line} of {file}"))
        }
    };
    report.fail(DoctorStep::File, text, to_do);
}

/// Uses the in-cluster configuration if there is no kubeconfig.
// C190
fn in_cluster_configuration(
    patient: &Patient,
    loaded: &LoadedKubeconfig,
    report: &mut ReportBuilder<'_>,
) -> Option<Effective> {
    let Some(effective) = in_cluster::configuration(&patient.pod, &patient.overrides, &*patient.files) else {
        let looked: Vec<String> =
            loaded.missing.iter().map(|path| quoted(&path.display().to_string())).collect();
        let text = match (&patient.sources, looked.as_slice()) {
            (KubeconfigSources::List(_), [_, ..]) => {
                format!("KUBECONFIG names only missing files: {}", looked.join(", "))
            }
            (_, [one]) => format!("missing {one}, and KUBECONFIG is not set"),
            _ => "missing kubeconfig".to_owned(),
        };
        report.fail(DoctorStep::File, text, "set KUBECONFIG or pass --kubeconfig");
        return None;
    };
    report.pass(DoctorStep::File, "no kubeconfig: using the service account of this pod");
    report.skip(DoctorStep::Context, "not used in a pod");
    report.pass(DoctorStep::Cluster, describe(DoctorStep::Cluster, &effective));
    report.pass(DoctorStep::User, describe(DoctorStep::User, &effective));
    report.pass(DoctorStep::Authority, describe(DoctorStep::Authority, &effective));
    Some(effective)
}

fn report_context(merged: &MergedKubeconfig, patient: &Patient, report: &mut ReportBuilder<'_>) {
    let requested = Some(&patient.overrides.context).filter(|name| !name.is_empty());
    report.pass(DoctorStep::Context, quoted(requested.unwrap_or(&merged.config.current_context)));
}

fn report_problem(
    step: DoctorStep,
    problem: &Problem,
    merged: &MergedKubeconfig,
    report: &mut ReportBuilder<'_>,
) {
    let to_do = match problem {
        Problem::NoSuchContext(_) | Problem::ContextNotFound(_) | Problem::NoConfiguration => {
            suggest_context(merged)
        }
        Problem::Unreadable { file, field, entry, .. } => {
            format!("put the {field} of {} at {}, or correct the path", quoted(entry), quoted(file))
        }
        Problem::TokenFile { file, .. } => {
            format!("put a token into {}, or correct the path in `tokenFile`", quoted(file))
        }
        other => other.way_out().unwrap_or_else(|| format!("correct the kubeconfig: {other}")),
    };
    report.fail(step, problem.to_string(), to_do);
}

fn suggest_context(merged: &MergedKubeconfig) -> String {
    const MAX_LISTED_CONTEXTS: usize = 8;
    let names: Vec<String> = merged.config.contexts.iter().map(|entry| quoted(&entry.name)).collect();
    match names.split_at_checked(MAX_LISTED_CONTEXTS) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("select a context: {} or one of {} more", first.join(", "), rest.len())
        }
        _ if names.is_empty() => "add a context to the kubeconfig: it has none".to_owned(),
        _ => format!("select an existing context: {}", names.join(", ")),
    }
}

fn step_of_problem(problem: &Problem) -> DoctorStep {
    match problem {
        Problem::NoSuchContext(_) | Problem::ContextNotFound(_) | Problem::NoConfiguration => {
            DoctorStep::Context
        }
        Problem::NoSuchCluster(_)
        | Problem::ClusterNotFound { .. }
        | Problem::NoClusterSelected
        | Problem::NoServer(_)
        | Problem::Proxy { .. } => DoctorStep::Cluster,
        Problem::TwoAuthorities(_) | Problem::Unreadable { field: "certificate-authority", .. } => {
            DoctorStep::Authority
        }
        _ => DoctorStep::User,
    }
}

fn step_of_obstacle(obstacle: &Obstacle) -> DoctorStep {
    match obstacle {
        Obstacle::Server { .. } => DoctorStep::Cluster,
        Obstacle::AuthorityAndInsecure | Obstacle::NoCertificate("certificate-authority") => {
            DoctorStep::Authority
        }
        _ => DoctorStep::User,
    }
}

fn step_of_advice(advice: &Advice) -> DoctorStep {
    match advice {
        Advice::PlainHttp(_) | Advice::NoScheme(_) => DoctorStep::Cluster,
        Advice::Insecure => DoctorStep::Authority,
        _ => DoctorStep::User,
    }
}

fn obstacle_to_do(obstacle: &Obstacle, effective: &Effective) -> String {
    let user = quoted(&effective.user_name);
    match obstacle {
        Obstacle::Server { .. } => "write the server as https://host:port".to_owned(),
        Obstacle::NoCertificate(field) => format!("put a PEM certificate into `{field}`"),
        Obstacle::NoKey(field) => format!("put a PEM private key into `{field}`"),
        Obstacle::RemovedProvider { instead, .. } => {
            format!("give user {user} an exec plugin (`{instead}`) instead of the auth-provider")
        }
        Obstacle::EmptyTokenFile(file) => format!("put a token into {}", quoted(file)),
        other => format!("correct user {user}: {other}"),
    }
}

fn advice_to_do(advice: &Advice, effective: &Effective) -> String {
    let user = quoted(&effective.user_name);
    match advice {
        Advice::UserMissing(_) => {
            format!("add an entry named {user} to `users`, or name another in the context")
        }
        Advice::NoUser => "add `user:` to the context".to_owned(),
        Advice::PlainHttp(_) | Advice::NoScheme(_) => {
            "use https:// in the server URL: credentials are sent only over https".to_owned()
        }
        Advice::Insecure => {
            "replace insecure-skip-tls-verify with the cluster's certificate-authority-data".to_owned()
        }
        Advice::KeyIgnored(_) => format!("add the client-certificate that belongs to the key of user {user}"),
        Advice::TokenFileWins(_) => format!("remove `token` or `tokenFile` from user {user}"),
        Advice::ExecUnused(_) => {
            format!("remove the static credential from user {user}, which prevents its plugin from running")
        }
    }
}

/// The text of a step that passes.
fn describe(step: DoctorStep, effective: &Effective) -> String {
    let cluster = &effective.cluster;
    match step {
        DoctorStep::User => {
            let mut kinds = effective.credential_kinds();
            kinds.retain(|kind| *kind != "impersonate");
            let kinds = if kinds.is_empty() { "no credential".to_owned() } else { kinds.join(", ") };
            if effective.user_name.is_empty() {
                kinds
            } else {
                format!("{}: {kinds}", quoted(&effective.user_name))
            }
        }
        DoctorStep::Authority if !effective.is_https() => "not needed over plain http".to_owned(),
        DoctorStep::Authority if !cluster.certificate_authority_data.is_empty() => {
            "certificate-authority-data".to_owned()
        }
        DoctorStep::Authority if !cluster.certificate_authority.is_empty() => {
            quoted(&cluster.certificate_authority)
        }
        DoctorStep::Authority => "system root certificates".to_owned(),
        _ => format!("{} at {}", quoted(&effective.cluster_name), redact::url(&effective.server())),
    }
}

/// A name from a file, in backticks and safe for a terminal.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", redact::terminal(text))
}
