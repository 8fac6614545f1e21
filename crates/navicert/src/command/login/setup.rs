//! `login setup`: checks a provider, prints what to configure, and writes the user into the kubeconfig if asked to.

use std::path::Path;

use navicert_client::ConfigOptions;
use navicert_client::edit::{FileChange, KubeconfigChanges};
use navicert_client::kubeconfig::MergedKubeconfig;
use navicert_login::args::{self, ExtensionDefaults, ParsedFlags};
use navicert_login::request::Form;
use navicert_login::{
    Invocation, LoginError, LoginRequest, SetupOptions, SetupReport, UserSource, choose_storage,
    kubeconfig_entry, variables_from_user, words_from_user,
};
use navicert_types::redact;

use super::json_reports::{SetupJson, verdict};
use super::{LoginOutput, context};
use crate::command::connect;
use crate::command::write_files::{self, Questions, WriteOutcome};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Format, Output};

/// Flags that need `--write`.
const FOR_WRITING: [&str; 2] = ["force", "yes"];

/// Checks a provider, and prints or writes what to configure. Claims are shown on a terminal only: they are the person's own.
pub(super) fn run(
    words: &[&str],
    flags: &ParsedFlags,
    environment: &Environment,
    output: &LoginOutput,
) -> Result<Exit, LoginError> {
    check_together(flags)?;
    let mut streams = Output::new(output.format);
    match prepare_and_run(words, flags, environment, output, &mut streams) {
        Ok(exit) => Ok(exit),
        Err(SetupFailure::Login(error)) => Err(error),
        Err(SetupFailure::Other(failure)) => Ok(crate::finish_failure(failure, &mut streams)),
    }
}

/// A failure of the login, or of the files.
enum SetupFailure {
    Login(LoginError),
    Other(Failure),
}

impl From<LoginError> for SetupFailure {
    fn from(error: LoginError) -> Self {
        SetupFailure::Login(error)
    }
}

impl From<Failure> for SetupFailure {
    fn from(failure: Failure) -> Self {
        SetupFailure::Other(failure)
    }
}

fn prepare_and_run(
    words: &[&str],
    flags: &ParsedFlags,
    environment: &Environment,
    output: &LoginOutput,
    streams: &mut Output,
) -> Result<Exit, SetupFailure> {
    let files = connect::located(flags.filled("kubeconfig").as_deref().map(Path::new), environment);
    let (mut request, mut options) = match user_source(flags) {
        None => (login_request(flags, environment)?, SetupOptions::from_flags(flags, None)?),
        Some((source, name)) => {
            let kubeconfig = files.load().map_err(Failure::from)?;
            from_user(words, &kubeconfig, (source, name.as_deref()), flags, environment)?
        }
    };
    let context = context(&environment.with_variables(&options.variables), Invocation::ByHand);
    choose_storage(&mut request, &mut options, &context);
    // Before anyone is asked to log in: the change needs no token.
    let changes = match flags.is_set("write") {
        true => planned_changes(&request, &options, &files, flags, environment)?,
        false => Vec::new(),
    };
    let report = navicert_login::setup(&request, &options, &context)?;
    if output.format == Format::Text {
        streams.text(&redact::terminal(&setup_text(&report, context.terminals.stdout)))?;
    }
    let outcome = match (flags.is_set("write"), report.is_good()) {
        (false, _) => None,
        (true, false) => {
            streams.error("nothing is written, because a step failed");
            None
        }
        (true, true) => Some(write_files::write(&changes, Questions::new(flags.is_set("yes")), streams)?),
    };
    print_outcome(&report, outcome.as_ref(), output, streams)?;
    let exit = if report.is_good() { Exit::Done } else { Exit::No };
    Ok(outcome.map_or(exit, |outcome| outcome.exit))
}

fn print_outcome(
    report: &SetupReport,
    outcome: Option<&WriteOutcome>,
    output: &LoginOutput,
    streams: &mut Output,
) -> Result<(), Failure> {
    if output.format == Format::Json {
        let files = outcome.map(|outcome| outcome.files.clone()).unwrap_or_default();
        return streams.json(&SetupJson::new(report, files));
    }
    match outcome {
        Some(outcome) if outcome.files.is_empty() => streams.text("\nthe kubeconfig has this user already\n"),
        Some(outcome) => streams.text(&format!("\n{}", redact::terminal(&outcome.text()))),
        None => Ok(()),
    }
}

/// Rejects flags that have no effect without others.
fn check_together(flags: &ParsedFlags) -> Result<(), LoginError> {
    let usage = |text: String| Err(LoginError::Usage(text));
    let is_written = flags.is_set("write");
    if let Some(name) = FOR_WRITING.iter().find(|name| flags.is_set(name) && !is_written) {
        return usage(format!("--{name} needs --write"));
    }
    let (is_read, is_both) = match (flags.text("from-auth-provider"), flags.text("from-kubelogin")) {
        (Some(_), Some(_)) => (true, true),
        (None, None) => (false, false),
        _ => (true, false),
    };
    if is_both {
        return usage("--from-auth-provider contradicts --from-kubelogin".to_owned());
    }
    let unused = ["kubeconfig", "context"].into_iter().find(|name| flags.filled(name).is_some());
    match unused.filter(|_| !is_written && !is_read) {
        Some(name) => usage(format!("--{name} needs --write, --from-auth-provider or --from-kubelogin")),
        None => Ok(()),
    }
}

/// What to read a user as, and which one if it is named.
fn user_source(flags: &ParsedFlags) -> Option<(UserSource, Option<String>)> {
    let sources =
        [("from-auth-provider", UserSource::AuthProvider), ("from-kubelogin", UserSource::Kubelogin)];
    let (name, source) = sources.into_iter().find(|(name, _)| flags.text(name).is_some())?;
    Some((source, flags.filled(name)))
}

fn login_request(flags: &ParsedFlags, environment: &Environment) -> Result<LoginRequest, LoginError> {
    args::login_request(Form::Own, flags, environment.home.as_deref(), ExtensionDefaults::default())
}

/// The request of an existing user; flags of the command line come after its own and replace them.
fn from_user(
    words: &[&str],
    kubeconfig: &MergedKubeconfig,
    (source, name): (UserSource, Option<&str>),
    flags: &ParsedFlags,
    environment: &Environment,
) -> Result<(LoginRequest, SetupOptions), LoginError> {
    let context = flags.filled("context").unwrap_or_else(|| kubeconfig.config.current_context.clone());
    let of_context = kubeconfig.context(&context).map(|context| context.user.clone());
    let unnamed = || LoginError::Usage(format!("unknown context `{context}`; name the user to read"));
    let name = name.map(ToOwned::to_owned).or(of_context).ok_or_else(unnamed)?;
    let user = kubeconfig.user(&name).ok_or_else(|| LoginError::Usage(format!("unknown user `{name}`")))?;
    let own = words_from_user(&name, &user, source)?;
    let words: Vec<&str> = own.iter().map(String::as_str).chain(words.iter().copied()).collect();
    let flags = args::parse_with(&words, args::SETUP_FLAGS)?;
    let options = SetupOptions {
        variables: variables_from_user(&user),
        ..SetupOptions::from_flags(&flags, Some(&name))?
    };
    Ok((login_request(&flags, &environment.with_variables(&options.variables))?, options))
}

fn planned_changes(
    request: &LoginRequest,
    options: &SetupOptions,
    files: &ConfigOptions,
    flags: &ParsedFlags,
    environment: &Environment,
) -> Result<Vec<FileChange>, Failure> {
    let mut changes = KubeconfigChanges::load(&files.located(), &environment.current_dir)?;
    changes.put_user(&options.user, &kubeconfig_entry(request, options), flags.is_set("force"))?;
    if let Some(context) = flags.filled("context") {
        changes.set_context_user(&context, &options.user)?;
    }
    Ok(changes.finish()?)
}

fn setup_text(report: &SetupReport, shows_claims: bool) -> String {
    let mut text = String::new();
    for step in &report.steps {
        text.push_str(&format!(
            "{}  {:<11} {}\n",
            verdict(step.verdict),
            step.name,
            redact::line(&step.text)
        ));
    }
    if shows_claims {
        text.push_str("\nclaims of your token:\n");
        for (name, value) in &report.claims {
            text.push_str(&format!("  {:<20} {}\n", redact::line(name), redact::line(value)));
        }
    }
    if let Some(documents) = &report.documents {
        text.push_str("\n# for the API server: --authentication-config\n");
        text.push_str(&documents.authentication_configuration);
        for binding in &documents.rbac {
            text.push_str("\n# for the cluster: kubectl apply -f\n");
            text.push_str(binding);
        }
        text.push_str("\n# for the kubeconfig\n");
        text.push_str(&documents.kubeconfig_user);
        text.push_str(&format!("\n# or: {}\n", documents.command));
    }
    text
}
