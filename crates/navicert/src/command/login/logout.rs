//! `logout`: ends one session, that of a kubeconfig context, or all.

use std::io::{self, Write as _};

use navicert_login::args::{self, ExtensionDefaults, ParsedFlags};
use navicert_login::keyring::Unlock;
use navicert_login::kubeconfig_user::KubeconfigUser;
use navicert_login::request::Form;
use navicert_login::{
    AllLoggedOut, Invocation, LoggedOut, LoginContext, LoginError, LoginRequest, LogoutOptions, Revocation,
};
use navicert_types::redact;

use super::json_reports::LogoutReport;
use super::report::{only, print, print_json};
use super::{LoginOutput, context, exit_of, folder, kubeconfig_context};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Format;

/// Flags that select no session, and so belong to `--all` too.
const WITH_ALL: [&str; 8] = [
    "all",
    "local",
    "browser",
    "post-logout-redirect-url",
    "browser-command",
    "token-cache-dir",
    "output",
    "v",
];
/// Flags that may stand beside `--context`.
const WITH_CONTEXT: [&str; 8] = [
    "context",
    "kubeconfig",
    "local",
    "browser",
    "post-logout-redirect-url",
    "browser-command",
    "output",
    "v",
];

/// Ends the sessions that the flags select.
pub(super) fn logout(
    flags: &ParsedFlags,
    environment: &Environment,
    output: &LoginOutput,
) -> Result<Exit, LoginError> {
    let options = LogoutOptions {
        is_local: flags.is_set("local"),
        ends_browser_session: flags.is_set("browser"),
        post_logout_redirect_url: flags.filled("post-logout-redirect-url"),
    };
    let Selected { request, context, ended } = end(flags, environment, &options)?;
    match output.format {
        Format::Json => print_json(&LogoutReport::from(ended.sessions.as_slice())),
        Format::Text if ended.sessions.is_empty() && ended.failures.is_empty() => {
            let issuer = if request.issuer.is_empty() { "any provider" } else { &request.issuer };
            print(&format!("not logged in to {}\n", redact::line(issuer)));
        }
        Format::Text => {
            let texts = ended.sessions.iter().map(|ended| logout_text(ended, &options));
            print(&texts.collect::<String>());
        }
    }
    if options.ends_browser_session {
        for end_session in ended.sessions.iter().filter_map(|ended| ended.end_session.as_ref()) {
            navicert_login::end_browser_session(end_session, &request, &context)?;
        }
    }
    Ok(report_failures(ended))
}

/// The sessions, and what a browser is opened with.
struct Selected {
    request: LoginRequest,
    context: LoginContext,
    ended: AllLoggedOut,
}

fn end(
    flags: &ParsedFlags,
    environment: &Environment,
    options: &LogoutOptions,
) -> Result<Selected, LoginError> {
    if flags.is_set("all") {
        only(flags, &WITH_ALL)?;
        let (mut folder, context) = folder(flags, environment)?;
        folder.unseal(Unlock::MayAsk, &context)?;
        let ended = navicert_login::logout_all(&folder, &context, options)?;
        let mut request = LoginRequest::new(Form::Own, "", "");
        request.browser.command = flags.filled("browser-command");
        return Ok(Selected { request, context, ended });
    }
    let (mut request, context) = match kubeconfig_context::read(flags, environment)? {
        Some(selected) => {
            only(flags, &WITH_CONTEXT)?;
            let not_a_login = selected.not_a_login();
            let KubeconfigUser::Login(user) = selected.user else {
                return Err(LoginError::Usage(not_a_login));
            };
            (user.request, selected.context)
        }
        None => {
            let home = environment.home.as_deref();
            let request = args::login_request(Form::Own, flags, home, ExtensionDefaults::default())?;
            (request, context(environment, Invocation::ByHand))
        }
    };
    request.browser.command = flags.filled("browser-command").or(request.browser.command);
    let ended = navicert_login::logout(&request, &context, options)?;
    let ended = AllLoggedOut { sessions: ended.into_iter().collect(), failures: Vec::new() };
    Ok(Selected { request, context, ended })
}

fn logout_text(ended: &LoggedOut, options: &LogoutOptions) -> String {
    let issuer = redact::line(&ended.issuer);
    let mut text = match &ended.revocation {
        Revocation::Revoked => format!("logged out of {issuer}; the provider revoked the session\n"),
        Revocation::Skipped => format!("removed the session at {issuer} from this machine only\n"),
        Revocation::NotOffered => {
            format!("removed the session at {issuer} from this machine; the provider offers no revocation\n")
        }
        _ => format!("removed the session at {issuer} from this machine\n"),
    };
    match (&ended.end_session, options.ends_browser_session) {
        (Some(end_session), false) => text.push_str(&format!(
            "the browser may still be logged in; to end that, use --browser, or open {}\n",
            redact::line(end_session.page())
        )),
        (None, true) => text.push_str("the provider has no page that ends the session of the browser\n"),
        _ => {}
    }
    text
}

/// Says what was not done. The first failure decides the exit code.
fn report_failures(ended: AllLoggedOut) -> Exit {
    let mut exit = Exit::Done;
    for session in ended.sessions {
        if let Revocation::Failed { error, until } = session.revocation {
            exit = Exit::Unreachable;
            let _ = writeln!(
                io::stderr(),
                "error: the session was removed here, but not at the provider ({}); the token stays valid there until {until}",
                redact::line(&error.to_string())
            );
        }
    }
    for error in &ended.failures {
        let failed = exit_of(error);
        let _ = writeln!(io::stderr(), "error: {}", redact::line(&error.to_string()));
        if exit == Exit::Done {
            exit = failed;
        }
    }
    exit
}
