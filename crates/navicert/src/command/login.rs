//! `login`, `logout` and `status`: OpenID Connect sessions. Answered before the other verbs are defined and without a runtime
//! where possible: kubectl starts this program for every command.

pub(crate) mod json_reports;
mod kubeconfig_context;
mod logout;
mod report;
mod setup;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::sync::Arc;

use navicert_client::doctor::InspectLogin;
use navicert_client::exec::author::{
    self, PluginInput, PluginInputError, PluginResponse, WriteResponseError,
};
use navicert_login::args::{self, ExtensionDefaults, LoginVerb, ParsedFlags};
use navicert_login::cache::CacheFolder;
use navicert_login::doctor::LoginInspector;
use navicert_login::request::Form;
use navicert_login::{ExitClass, Invocation, LoginContext, LoginError, LoginRequest, LoginSession, Messages};
use navicert_types::exec_credential::INFO_VARIABLE;
use navicert_types::{Secret, error_chain, redact};

use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Format;

/// The request of a run by hand, so that its response has the current version.
const BY_HAND: &str =
    r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":true}}"#;

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Login(LoginVerb),
    Logout,
    Status,
}

/// Whether the command line is one of these verbs, and not a request for help.
pub(crate) fn is_requested(arguments: &[OsString]) -> bool {
    let Some((program, words)) = arguments.split_first() else { return false };
    let is_help = |word: &OsString| word == "--help" || word == "-h";
    let (_, verb) = split_format(words);
    let is_verb =
        verb.first().is_some_and(|word| ["login", "logout", "status"].iter().any(|verb| word == *verb));
    !words.iter().any(is_help) && (args::is_alias(program) || is_verb)
}

/// Splits `-o json` before the verb from the rest.
fn split_format(words: &[OsString]) -> (&[OsString], &[OsString]) {
    let count = match words.first().and_then(|word| word.to_str()) {
        Some("-o" | "--output") => 2,
        Some(word) if word.starts_with("-o") || word.starts_with("--output=") => 1,
        _ => 0,
    };
    words.split_at_checked(count).unwrap_or((words, &[]))
}

/// Runs the verb.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let environment = Environment::read();
    let program = arguments.first().map_or(OsStr::new(""), OsString::as_os_str);
    let is_alias = args::is_alias(program);
    let words: Option<Vec<&str>> = arguments.iter().skip(1).map(|word| word.to_str()).collect();
    let info = environment.variable(INFO_VARIABLE).filter(|value| !value.is_empty());
    let mut output = LoginOutput { is_exec: info.is_some(), format: Format::Text };
    let Some(words) = words else {
        return output.fail(&LoginError::Usage("an argument is not UTF-8".to_owned()));
    };
    let (verb, words) = split_verb(&words, is_alias);
    let flags = match parse_flags(verb, &words, &mut output) {
        Ok(flags) => flags,
        Err(error) => return output.fail(&error),
    };
    let result = match verb {
        Verb::Login(LoginVerb::Get(form)) => get(form, &flags, &environment, info.as_deref(), &output),
        Verb::Login(LoginVerb::Clean) => report::clean(&flags, &environment, &output),
        Verb::Login(LoginVerb::Version) => report::version(),
        Verb::Login(LoginVerb::Setup) => setup::run(&words, &flags, &environment, &output),
        Verb::Login(LoginVerb::StandAlone) => Err(LoginError::Usage(
            "kubelogin's stand-alone mode is not provided; use get-token in the kubeconfig's exec section"
                .to_owned(),
        )),
        Verb::Logout => logout::logout(&flags, &environment, &output),
        Verb::Status => report::status(&flags, &environment, &output),
    };
    result.unwrap_or_else(|error| output.fail(&error))
}

/// The verb, and the words of its flags: those before it too.
fn split_verb<'w>(words: &[&'w str], is_alias: bool) -> (Verb, Vec<&'w str>) {
    if is_alias {
        let (verb, rest) = args::split_verb(words, true);
        return (Verb::Login(verb), rest.to_vec());
    }
    let at = words.iter().position(|word| ["login", "logout", "status"].contains(word)).unwrap_or_default();
    let (before, rest) = words.split_at_checked(at).unwrap_or((&[], words));
    let (name, rest) = rest.split_first().unwrap_or((&"login", &[]));
    let (verb, rest) = match *name {
        "logout" => (Verb::Logout, rest),
        "status" => (Verb::Status, rest),
        _ => {
            let (verb, rest) = args::split_verb(rest, false);
            (Verb::Login(verb), rest)
        }
    };
    (verb, before.iter().chain(rest).copied().collect())
}

fn parse_flags(verb: Verb, words: &[&str], output: &mut LoginOutput) -> Result<ParsedFlags, LoginError> {
    // An error of another flag is printed in this format too.
    if asks_for_json(words) {
        output.format = Format::Json;
    }
    let further = match verb {
        Verb::Login(LoginVerb::Setup) => args::SETUP_FLAGS,
        Verb::Login(_) => &[],
        Verb::Logout => args::LOGOUT_FLAGS,
        Verb::Status => args::STATUS_FLAGS,
    };
    let flags = args::parse_with(words, further)?;
    output.format = match flags.text("output") {
        None | Some("text" | "yaml") => Format::Text,
        Some("json") => Format::Json,
        Some(_) => {
            return Err(LoginError::Usage("invalid value of --output: expected text or json".to_owned()));
        }
    };
    Ok(flags)
}

/// Whether the words name the format JSON, whatever the others are.
fn asks_for_json(words: &[&str]) -> bool {
    let is_pair = |pair: &[&str]| matches!(pair, ["-o" | "--output", "json"]);
    words.iter().any(|word| ["-ojson", "-o=json", "--output=json"].contains(word))
        || words.windows(2).any(is_pair)
}

/// Gets a credential and prints it, or a report of it on a terminal.
fn get(
    form: Form,
    flags: &ParsedFlags,
    environment: &Environment,
    info: Option<&OsStr>,
    output: &LoginOutput,
) -> Result<Exit, LoginError> {
    hide_memory();
    let input =
        PluginInput::read(Some(info.unwrap_or(OsStr::new(BY_HAND)))).map_err(|error| input_error(&error))?;
    let defaults = ExtensionDefaults::read(input.config().filter(|_| info.is_some()))?;
    let request = args::login_request(form, flags, environment.home.as_deref(), defaults)?;
    let invocation = match info {
        Some(_) => Invocation::Exec { is_interactive: input.is_interactive() },
        None => Invocation::ByHand,
    };
    let mut context = context(environment, invocation);
    context.server = input.cluster().map_err(|error| input_error(&error))?.map(|cluster| cluster.server);
    if request.connection.is_insecure && context.terminals.stderr {
        context
            .messages
            .show("warning: the provider's certificate is not verified (--insecure-skip-tls-verify)");
    }
    if request.verbosity >= 1 {
        flags.without_effect().for_each(|name| context.messages.show(&format!("--{name} has no effect")));
    }
    let session = navicert_login::login(&request, &context)?;
    let by_hand_on_terminal = info.is_none() && context.terminals.stdout && output.format == Format::Text;
    if by_hand_on_terminal {
        report::session(&request, &session);
        return Ok(Exit::Done);
    }
    respond(&request, &session, &input)
}

fn respond(request: &LoginRequest, session: &LoginSession, input: &PluginInput) -> Result<Exit, LoginError> {
    let no_token = || LoginError::Internal("a session without a token".to_owned());
    let token = session.token().ok_or_else(no_token)?;
    let mut response = PluginResponse::token(token.expose()).with_expiry(session.expiry());
    if let Some((certificate, key)) = &request.with_certificate {
        response = response.with_certificate(read(certificate)?, Secret::new(read(key)?));
    }
    match response.write(input, &mut io::stdout().lock()) {
        Ok(()) => Ok(Exit::Done),
        // The client has gone.
        Err(WriteResponseError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error) => Err(LoginError::Internal(error_chain(&error))),
    }
}

fn read(path: &std::path::Path) -> Result<String, LoginError> {
    std::fs::read_to_string(path)
        .map_err(|error| LoginError::File { path: path.display().to_string(), why: error.to_string() })
}

fn input_error(error: &PluginInputError) -> LoginError {
    LoginError::Usage(format!("invalid {INFO_VARIABLE}: {error}"))
}

/// Keeps the tokens in this process's memory away from core dumps and other processes of the user.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    let _ = navicert_io::process_memory::hide_memory();
}

fn context(environment: &Environment, invocation: Invocation) -> LoginContext {
    LoginContext::new(
        environment.inherited.clone(),
        environment.home.clone(),
        invocation,
        Arc::new(StandardError),
    )
}

/// Looks at sessions for `doctor`.
pub(crate) fn inspector(environment: &Environment) -> Arc<dyn InspectLogin> {
    Arc::new(LoginInspector::new(context(environment, Invocation::ByHand)))
}

fn folder(flags: &ParsedFlags, environment: &Environment) -> Result<(CacheFolder, LoginContext), LoginError> {
    let context = context(environment, Invocation::ByHand);
    let dir = flags.filled("token-cache-dir").map(std::path::PathBuf::from);
    Ok((CacheFolder::locate_default(dir.as_deref(), &context)?, context))
}

/// Messages for the person.
#[derive(Debug)]
struct StandardError;

impl Messages for StandardError {
    fn show(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", redact::terminal(text));
    }
}

fn exit_of(error: &LoginError) -> Exit {
    match error.exit() {
        ExitClass::Failure => Exit::No,
        ExitClass::Usage => Exit::Usage,
        ExitClass::BadInput => Exit::BadInput,
        ExitClass::Unreachable => Exit::Unreachable,
        ExitClass::Denied => Exit::Denied,
        _ => Exit::Bug,
    }
}

/// How results and errors are printed.
struct LoginOutput {
    /// A client started the program and reads its standard output.
    is_exec: bool,
    format: Format,
}

impl LoginOutput {
    /// Prints the error: as a `Status` for a client, as an object with `-o json`, and as one sentence on standard error.
    fn fail(&self, error: &LoginError) -> Exit {
        let exit = exit_of(error);
        let message = redact::line(&error.to_string()).into_owned();
        // A closed stream leaves no reader to tell.
        if self.is_exec {
            let _ = author::fail(&message, &mut io::stdout().lock(), &mut io::stderr().lock());
        } else {
            if self.format == Format::Json {
                let mut report = crate::output::error_report(exit, std::slice::from_ref(&message));
                report.error.code = Some(error.code().as_str().to_owned());
                let value = serde_json::to_value(report).unwrap_or_default();
                let _ = writeln!(io::stdout(), "{}", redact::json(&format!("{value:#}")));
            }
            let _ = writeln!(io::stderr(), "error: {message}");
        }
        if let LoginError::Interrupted { signal: Some(signal) } = error {
            // Returns only if the signal does not end the process.
            let _ = navicert_plugin::foreground::exit_by_signal(*signal);
        }
        exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    // L101, L103
    #[test]
    fn recognizes_its_verbs_without_defining_the_others() {
        for line in [
            "navicert login",
            "navicert -o json status",
            "navicert --output=json logout",
            "/x/kubelogin get-token",
        ] {
            assert!(is_requested(&words(line)), "{line}");
        }
        for line in
            ["navicert", "navicert whoami", "navicert login --help", "navicert help login", "kubelogin -h"]
        {
            assert!(!is_requested(&words(line)), "{line}");
        }
    }

    #[test]
    fn flags_before_the_verb_belong_to_it() {
        let (verb, rest) = split_verb(&["-o", "json", "login", "get-token", "--v=1"], false);
        assert_eq!(verb, Verb::Login(LoginVerb::Get(Form::Compatible)));
        assert_eq!(rest, ["-o", "json", "--v=1"]);
        assert_eq!(split_verb(&["get-token"], true).0, Verb::Login(LoginVerb::Get(Form::Compatible)));
        assert_eq!(split_verb(&["status", "-o", "json"], false).0, Verb::Status);
    }
}
