//! The first five steps, which only read files: the results of resolving the configuration, one by one.

use navicert_types::{error_chain, redact};

use super::duplicates::{self, Duplicate};
use super::report::{DoctorStep, ReportBuilder};
use crate::config::{
    ClientProblem, Config, ConfigError, ConfigErrorClass, ConfigOptions, ConfigReport, Problem, WarningKind,
};
use crate::credential::{IdentityError, TokenFileError};
use crate::kubeconfig::{
    Effective, KubeconfigFileError, KubeconfigFileErrorReason, KubeconfigSources, LoadedKubeconfig,
    MergedKubeconfig, ValidationError,
};

/// Loads the files and selects the context; `None` if the remaining steps cannot run.
pub(super) fn read(options: &ConfigOptions, report: &mut ReportBuilder<'_>) -> Option<Config> {
    let loaded = match options.load_files() {
        Ok(loaded) => loaded,
        Err(failed) => {
            report_broken_file(failed.errors.first()?, report);
            return None;
        }
    };
    let (files, has_files) = (FileNames::new(&loaded), !loaded.files.is_empty());
    let duplicates = duplicates::find(&loaded);
    let merged = MergedKubeconfig::new(loaded);
    let resolved = options.report(&merged);
    if has_files {
        files.report(report);
    } else if resolved.in_cluster {
        report.pass(DoctorStep::File, "no kubeconfig: using the service account of this pod");
    } else {
        files.report_none(&options.located(), report);
        return None;
    }
    report_selection(options, &merged, &duplicates, resolved, report)
}

/// Reports context, cluster, user and certificate authority.
fn report_selection(
    options: &ConfigOptions,
    merged: &MergedKubeconfig,
    duplicates: &[Duplicate],
    resolved: ConfigReport,
    report: &mut ReportBuilder<'_>,
) -> Option<Config> {
    for step in [DoctorStep::Context, DoctorStep::Cluster, DoctorStep::User, DoctorStep::Authority] {
        let error = resolved.errors.iter().find(|error| step_of(error) == Some(step));
        let warning = resolved.warnings.iter().find(|warning| step_of_warning(&warning.kind) == step);
        match (error, warning, &resolved.effective) {
            (Some(error), _, effective) => {
                report.fail(step, error_chain(error), to_do(error, effective.as_ref()));
            }
            (None, Some(warning), Some(effective)) => {
                report.warn(step, warning.to_string(), warning_to_do(&warning.kind, effective));
            }
            (None, _, Some(_)) if step == DoctorStep::Context && resolved.in_cluster => {
                report.skip(step, "not used in a pod");
            }
            (None, _, Some(effective)) => {
                let name =
                    if step == DoctorStep::User { &effective.user_name } else { &effective.cluster_name };
                match (duplicates::warning(duplicates, step, name), describe(step, effective)) {
                    (Some((text, to_do)), _) => report.warn(step, text, to_do),
                    (None, Some(text)) => report.pass(step, text),
                    (None, None) => report.skip(step, "no context is selected"),
                }
            }
            (None, _, None) if step == DoctorStep::Context => {
                let requested = Some(&options.overrides.context).filter(|name| !name.is_empty());
                report.pass(step, quoted(requested.unwrap_or(&merged.config.current_context)));
            }
            (None, _, None) => report.skip(step, "skipped because the user does not exist"),
        }
        if report.has_failed() && matches!(step, DoctorStep::Context | DoctorStep::Cluster) {
            return None;
        }
    }
    // The policy is checked by a later step.
    resolved.config.filter(|_| !report.has_failed())
}

/// The names of the files that were read, and of those that do not exist.
struct FileNames {
    read: Vec<String>,
    missing: Vec<String>,
}

impl FileNames {
    fn new(loaded: &LoadedKubeconfig) -> Self {
        FileNames {
            read: loaded.files.iter().map(|file| quoted(&file.path.display().to_string())).collect(),
            missing: loaded.missing.iter().map(|path| quoted(&path.display().to_string())).collect(),
        }
    }

    fn report(&self, report: &mut ReportBuilder<'_>) {
        let (read, missing) = (self.read.join(", "), self.missing.join(", "));
        if missing.is_empty() {
            return report.pass(DoctorStep::File, read);
        }
        report.warn(
            DoctorStep::File,
            format!("{read}; KUBECONFIG also names missing files: {missing}"),
            format!("remove {missing} from KUBECONFIG"),
        );
    }

    fn report_none(&self, sources: &KubeconfigSources, report: &mut ReportBuilder<'_>) {
        let text = match (sources, self.missing.as_slice()) {
            (KubeconfigSources::List(_), [_, ..]) => {
                format!(
                    "no configuration has been provided: KUBECONFIG names only missing files: {}",
                    self.missing.join(", ")
                )
            }
            (_, [one]) => {
                format!("no configuration has been provided: missing {one}, and KUBECONFIG is not set")
            }
            _ => "no configuration has been provided".to_owned(),
        };
        report.fail(DoctorStep::File, text, "set KUBECONFIG or pass --kubeconfig");
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

/// The step that reports an error; `None` for those of later steps.
fn step_of(error: &ConfigError) -> Option<DoctorStep> {
    Some(match error.class() {
        ConfigErrorClass::Unreadable | ConfigErrorClass::Malformed => DoctorStep::File,
        ConfigErrorClass::NoConfiguration | ConfigErrorClass::ContextNotFound => DoctorStep::Context,
        ConfigErrorClass::ClusterNotFound | ConfigErrorClass::Server | ConfigErrorClass::Proxy => {
            DoctorStep::Cluster
        }
        ConfigErrorClass::Authority => DoctorStep::Authority,
        ConfigErrorClass::UserNotFound
        | ConfigErrorClass::ClientCertificate
        | ConfigErrorClass::Token
        | ConfigErrorClass::Exec
        | ConfigErrorClass::AuthProvider
        | ConfigErrorClass::ExternalSigner
        | ConfigErrorClass::Impersonation
        | ConfigErrorClass::MissingFeature => DoctorStep::User,
        ConfigErrorClass::PolicyDenied => return None,
    })
}

fn to_do(error: &ConfigError, effective: Option<&Effective>) -> String {
    let cluster = quoted(effective.map_or("", |effective| &effective.cluster_name));
    let user = quoted(effective.map_or("", |effective| &effective.user_name));
    match &error.problem {
        Problem::Validation(ValidationError::Unreadable { file, field, entry, .. }) => {
            format!("put the {field} of {} at {}, or correct the path", quoted(entry), quoted(file))
        }
        Problem::Validation(ValidationError::TokenFile { file, .. }) => {
            format!("put a token into {}, or correct the path in `tokenFile`", quoted(file))
        }
        Problem::Client(problem) => match problem {
            ClientProblem::Server { .. } => {
                format!("write the server of cluster {cluster} as https://host:port")
            }
            ClientProblem::ServerName(_) => format!("correct `tls-server-name` of cluster {cluster}"),
            ClientProblem::ProxyEnvironment { variable, .. } => format!("correct {variable}, or unset it"),
            ClientProblem::NoAuthority { encoded_twice: true } => format!(
                "decode certificate-authority-data of cluster {cluster} once: it is encoded in base64 twice"
            ),
            ClientProblem::NoAuthority { .. }
            | ClientProblem::InvalidAuthority
            | ClientProblem::AuthorityIsDirectory(_) => {
                format!("put the PEM certificate of the certificate authority into cluster {cluster}")
            }
            ClientProblem::Identity(IdentityError::Mismatch | IdentityError::KeyType) => {
                format!("give user {user} the key that its certificate was issued for")
            }
            ClientProblem::Identity(_) => {
                format!("give user {user} a PEM certificate and its private key")
            }
            ClientProblem::RemovedProvider { instead, .. } => {
                format!("give user {user} an exec plugin (`{instead}`) instead of the auth-provider")
            }
            ClientProblem::TokenFile(TokenFileError::Empty { path }) => {
                format!("put a token into {}", quoted(path))
            }
            _ => error.help().map_or_else(|| format!("correct user {user}: {error}"), ToOwned::to_owned),
        },
        _ => error.help().map_or_else(|| format!("correct the kubeconfig: {error}"), ToOwned::to_owned),
    }
}

fn step_of_warning(warning: &WarningKind) -> DoctorStep {
    match warning {
        WarningKind::PlainHttp(_) | WarningKind::NoScheme(_) => DoctorStep::Cluster,
        WarningKind::Insecure => DoctorStep::Authority,
        _ => DoctorStep::User,
    }
}

fn warning_to_do(warning: &WarningKind, effective: &Effective) -> String {
    let user = quoted(&effective.user_name);
    match warning {
        WarningKind::UserMissing(_) => {
            format!("add an entry named {user} to `users`, or name another in the context")
        }
        WarningKind::NoUser => "add `user:` to the context".to_owned(),
        WarningKind::PlainHttp(_) | WarningKind::NoScheme(_) => {
            "use https:// in the server URL: credentials are sent only over https".to_owned()
        }
        WarningKind::Insecure => {
            "replace insecure-skip-tls-verify with the cluster's certificate-authority-data".to_owned()
        }
        WarningKind::KeyIgnored(_) => {
            format!("add the client-certificate that belongs to the key of user {user}")
        }
        WarningKind::TokenFileWins(_) => format!("remove `token` or `tokenFile` from user {user}"),
        WarningKind::ExecUnused(_) => {
            format!("remove the static credential from user {user}, which prevents its plugin from running")
        }
    }
}

/// The text of a step that passes; `None` if there is nothing to describe.
fn describe(step: DoctorStep, effective: &Effective) -> Option<String> {
    let cluster = &effective.cluster;
    Some(match step {
        DoctorStep::Context => quoted(effective.context.as_ref()?),
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
    })
}

/// A name from a file, in backticks and safe for a terminal.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", redact::line(text))
}
