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
    command.args(flags()).args(LOGOUT_FLAGS.iter().map(argument))
}

fn status(command: Command) -> Command {
    command.args(cache_flags()).args(STATUS_FLAGS.iter().map(argument))
}

/// `--output` is one of navicert's own. The others are accepted for kubelogin's kubeconfigs, and nothing recommends them: other
/// users see arguments.
const UNLISTED: [&str; 3] = ["output", "oidc-client-secret", "password"];

/// Every flag with a description.
fn flags() -> impl Iterator<Item = Arg> {
    FLAGS.iter().filter(|flag| !flag.help.is_empty() && !UNLISTED.contains(&flag.name)).map(argument)
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
