//! The flags of `login`, `logout` and `status`, for help, manual pages and completions. The verbs parse their command lines
//! themselves, by kubelogin's rules: `command/login.rs`.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use navicert_login::args::{FLAGS, Flag, FlagKind, LOGOUT_FLAGS, SETUP_FLAGS, STATUS_FLAGS};

use super::examples;

macro_rules! help_only {
    ($name:ident, $augment:expr) => {
        #[derive(Debug)]
        pub(crate) struct $name;

        impl FromArgMatches for $name {
            fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
                Ok($name)
            }

            fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
                Ok(())
            }
        }

        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                $augment(command)
            }

            fn augment_args_for_update(command: Command) -> Command {
                $augment(command)
            }
        }
    };
}

help_only!(LoginArgs, login);
help_only!(LogoutArgs, logout);
help_only!(StatusArgs, status);

fn login(command: Command) -> Command {
    let get_token = Command::new("get-token")
        .about("Get a credential with kubelogin's defaults")
        .after_help(examples::LOGIN_GET_TOKEN)
        .args(flags());
    let clean = Command::new("clean")
        .about("Remove every session from this machine")
        .after_help(examples::LOGIN_CLEAN)
        .args(cache_flags());
    let setup = Command::new("setup")
        .about("Check a provider, log in, and print or write what to configure")
        .after_help(examples::LOGIN_SETUP)
        .args(SETUP_FLAGS.iter().map(argument))
        .args(flags());
    command.args(flags()).subcommand(get_token).subcommand(setup).subcommand(clean)
}

fn logout(command: Command) -> Command {
    command.args(LOGOUT_FLAGS.iter().map(argument)).args(flags())
}

fn status(command: Command) -> Command {
    command.args(cache_flags()).args(STATUS_FLAGS.iter().map(argument))
}

/// `--output` is one of navicert's own. The others are accepted for kubelogin's kubeconfigs, and nothing recommends them: other
/// users see arguments.
const UNLISTED: [&str; 3] = ["output", "oidc-client-secret", "password"];

/// Headings of the help, with their flags. The others are options without a heading.
const HEADINGS: [(&str, &[&str]); 7] = [
    (
        "Client authentication",
        &[
            "oidc-client-secret-file",
            "oidc-client-assertion-key",
            "oidc-client-assertion-kid",
            "oidc-client-assertion-file",
            "client-certificate",
            "client-key",
        ],
    ),
    (
        "Connection to the provider",
        &[
            "oidc-request-header",
            "certificate-authority",
            "certificate-authority-data",
            "insecure-skip-tls-verify",
            "tls-server-name",
            "proxy-url",
        ],
    ),
    (
        "Session",
        &["token-cache-dir", "token-cache-storage", "no-refresh-token", "min-validity", "session-max"],
    ),
    (
        "Browser",
        &[
            "oidc-redirect-url",
            "listen-address",
            "skip-open-browser",
            "browser-command",
            "local-server-cert",
            "local-server-key",
            "open-url-after-authentication",
        ],
    ),
    (
        "Authorization request",
        &[
            "oidc-pkce-method",
            "oidc-use-pkce",
            "oidc-auth-request-extra-params",
            "login-hint",
            "prompt",
            "max-age",
            "acr-values",
            "ui-locales",
            "audience",
            "resource",
            "par",
        ],
    ),
    ("Password grant", &["username", "password-file"]),
    (
        "Token exchange",
        &[
            "exchange-audience",
            "subject-token",
            "subject-token-type",
            "actor-token",
            "actor-token-type",
            "requested-token-type",
        ],
    ),
];

/// Every flag with a description.
fn flags() -> impl Iterator<Item = Arg> {
    let listed = FLAGS.iter().filter(|flag| !flag.help.is_empty() && !UNLISTED.contains(&flag.name));
    listed.map(|flag| match HEADINGS.iter().find(|(_, names)| names.contains(&flag.name)) {
        Some((heading, _)) => argument(flag).help_heading(*heading),
        None => argument(flag),
    })
}

fn cache_flags() -> impl Iterator<Item = Arg> {
    FLAGS.iter().filter(|flag| flag.name == "token-cache-dir").map(argument)
}

fn argument(flag: &'static Flag) -> Arg {
    let argument = Arg::new(flag.name).long(flag.name).help(flag.help);
    let argument = match flag.short {
        Some(letter) => argument.short(letter),
        None => argument,
    };
    match flag.kind {
        FlagKind::Bool => argument.action(ArgAction::SetTrue),
        FlagKind::List | FlagKind::Array | FlagKind::Map => {
            argument.action(ArgAction::Append).value_name(flag.value)
        }
        FlagKind::OptionalText => argument
            .action(ArgAction::Set)
            .value_name(flag.value)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(""),
        FlagKind::Text | FlagKind::Integer => argument.action(ArgAction::Set).value_name(flag.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_flags_that_exist() {
        for name in HEADINGS.iter().flat_map(|(_, names)| *names) {
            assert!(FLAGS.iter().any(|flag| flag.name == *name && !UNLISTED.contains(name)), "{name}");
        }
    }
}
