//! The command line: every verb, flag and help text. Parsing only; `command/` does the work.

pub(crate) mod authn;
pub(crate) mod cel;
pub(crate) mod client;
pub(crate) mod examples;
pub(crate) mod exec_plugin;
pub(crate) mod image;
pub(crate) mod login;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod signer;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Effects};
use clap::builder::{PossibleValuesParser, Styles, TypedValueParser};
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use navicert_authn::KubeVersion;

use crate::output::Format;
use crate::{env, exit};

/// The position of `--output` in every help text: after the verb's own options.
const OUTPUT_ORDER: usize = 500;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().effects(Effects::BOLD))
    .valid(AnsiColor::Green.on_default())
    .invalid(AnsiColor::Yellow.on_default());

/// The version, the commit it was built from, the target and the features, separated by commas.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("NAVICERT_COMMIT"),
    ", ",
    env!("NAVICERT_TARGET"),
    ", features: ",
    env!("NAVICERT_FEATURES"),
    ")"
);

/// Kubernetes credentials: for clients, API servers, image pulls and hardware keys.
#[derive(Debug, Parser)]
#[command(
    name = "navicert",
    version = VERSION,
    styles = STYLES,
    arg_required_else_help = true,
    disable_help_subcommand = true,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT", display_order = OUTPUT_ORDER)]
    pub(crate) output: Format,
}

impl Cli {
    /// Parses the command line of this process; help and version are returned as errors, as clap does. `is_topic` is whether
    /// words after `help` name a guide.
    pub(crate) fn read(is_topic: impl Fn(&[String]) -> bool) -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let program = program_name(arguments.first());
        let parse = |arguments| {
            let matches = definition().bin_name(program).try_get_matches_from(arguments)?;
            Cli::from_arg_matches(&matches)
        };
        let cli = parse(arguments)?;
        match &cli.verb {
            // `navicert help authn explain` is `navicert authn explain --help`; a guide has no verb.
            Verb::Help { verb } if !is_topic(verb) => {
                let verbs = verb.iter().map(OsString::from);
                parse([program.into()].into_iter().chain(verbs).chain(["--help".into()]).collect())
            }
            _ => Ok(cli),
        }
    }
}

/// Whether the command line requests the version and nothing else.
pub(crate) fn requests_version(mut arguments: impl Iterator<Item = OsString>) -> bool {
    let requested = arguments.nth(1);
    requested.is_some_and(|argument| ["--version", "-V", "version"].iter().any(|form| argument == *form))
        && arguments.next().is_none()
}

/// Whether `-o json` is on the command line, for an error before the command line is understood.
pub(crate) fn requests_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let mut arguments = arguments.skip(1).take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let is_next = argument == "-o" || argument == "--output";
        if is_next && arguments.next().is_some_and(|format| format == "json") {
            return true;
        }
        if ["-ojson", "-o=json", "--output=json"].iter().any(|form| argument == *form) {
            return true;
        }
    }
    false
}

/// A usage error as one line, without the usage text.
pub(crate) fn usage_message(error: &clap::Error) -> String {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "missing subcommand or arguments; see --help".to_owned();
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

/// The program name in usage texts: `kubectl navicert` when run as a kubectl plugin, whatever its path.
fn program_name(program: Option<&OsString>) -> &'static str {
    match program.and_then(|path| Path::new(path).file_stem()) {
        Some(name) if name == "kubectl-navicert" => "kubectl navicert",
        _ => "navicert",
    }
}

/// The definition that parsing, help, completions and manual pages share.
pub(crate) fn definition() -> Command {
    let (examples, exit_codes) = (examples::NAVICERT, exit::HELP);
    Cli::command()
        .after_help(format!("{examples}\n\n{exit_codes}"))
        .after_long_help(format!("{examples}\n\n{exit_codes}\n\nEnvironment:\n{}", environment_table()))
}

/// The environment variables in at most 80 columns. The meaning of a long name stands on its own line.
fn environment_table() -> String {
    const MEANING_COLUMN: usize = 26;
    const COLUMNS: usize = 80;
    let (mut table, mut line) = (String::new(), String::new());
    for variable in env::VARIABLES {
        line.push_str("  ");
        line.push_str(variable.name);
        if line.len() + 2 > MEANING_COLUMN {
            table.push_str(&line);
            table.push('\n');
            line.clear();
        }
        for word in variable.meaning.split(' ') {
            let length = line.chars().count();
            if length < MEANING_COLUMN {
                line = format!("{line:<MEANING_COLUMN$}{word}");
            } else if length + 1 + word.chars().count() > COLUMNS {
                table.push_str(&line);
                table.push('\n');
                line = format!("{:MEANING_COLUMN$}{word}", "");
            } else {
                line.push(' ');
                line.push_str(word);
            }
        }
        table.push_str(&line);
        table.push('\n');
        line.clear();
    }
    table
}

/// Rules to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Exactly the rules of Kubernetes
    Kube,
    /// Stricter than Kubernetes where its rules are unsafe
    Hardened,
}

/// Parses a Kubernetes version that profile `kube` can follow.
fn kube_versions() -> impl TypedValueParser<Value = KubeVersion> {
    PossibleValuesParser::new(KubeVersion::ALL.map(KubeVersion::name))
        .try_map(|name| name.parse::<KubeVersion>())
}

// Arguments of a verb are defined when it is used. Its description is the one here: a doc comment on a struct of
// arguments would replace it.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Verb {
    /// Run a command through a local gateway that adds the credential
    #[command(after_help = run::RUN_HELP)]
    Run(Box<run::RunArgs>),
    /// Run a gateway that several commands share
    #[command(after_help = run::GATEWAY_HELP)]
    Gateway(Box<run::GatewayArgs>),
    /// Remove the files of a gateway that was killed
    #[command(hide = true)]
    GatewayGuard {
        /// Directory of the gateway
        dir: PathBuf,
    },
    /// Log in to an OpenID provider, as a credential plugin or by hand
    #[command(after_help = examples::LOGIN)]
    Login(login::LoginArgs),
    /// Log out: revoke a session at its provider and remove it here
    #[command(after_help = examples::LOGOUT)]
    Logout(login::LogoutArgs),
    /// List the sessions of `navicert login`
    #[command(after_help = examples::STATUS)]
    Status(login::StatusArgs),
    /// Show and check kubeconfig files
    #[command(subcommand)]
    #[command(after_help = examples::KUBECONFIG)]
    Kubeconfig(KubeconfigVerb),
    /// Show the user a cluster authenticates you as
    #[command(after_help = examples::WHOAMI)]
    Whoami(Box<client::WhoamiArgs>),
    /// Diagnose a context, from its kubeconfig to the server's response
    #[command(after_help = examples::DOCTOR)]
    Doctor(Box<client::DoctorArgs>),
    /// Check, keep and allow credential plugins
    #[command(subcommand)]
    #[command(after_help = examples::EXEC_PLUGIN)]
    ExecPlugin(exec_plugin::ExecPluginVerb),
    /// Check, test and explain structured authentication configurations
    #[command(subcommand)]
    #[command(after_help = examples::AUTHN)]
    Authn(authn::AuthnVerb),
    /// Check and evaluate CEL expressions as Kubernetes does
    #[command(subcommand)]
    #[command(after_help = examples::CEL)]
    Cel(cel::CelVerb),
    /// Get, check and explain image pull credentials
    #[command(subcommand)]
    #[command(after_help = examples::IMAGE)]
    Image(Box<image::ImageVerb>),
    /// List, test, set up and serve PKCS#11 keys
    #[command(subcommand)]
    #[command(after_help = examples::SIGNER)]
    Signer(signer::SignerVerb),
    /// Serve structured authentication to API servers, nginx and Envoy
    #[command(after_help = serve::HELP)]
    Serve(Box<serve::ServeArgs>),
    /// Verify server certificates as a client does
    #[command(hide = true)]
    TlsVerify(exec_plugin::BatchArgs),
    /// Interpret requests as kube-apiserver does
    #[command(hide = true)]
    RequestInfo(exec_plugin::BatchArgs),
    /// Print a shell completion script
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to print the script for
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print or write the manual pages
    #[command(after_help = examples::MAN)]
    Man {
        /// Directory to write one page per verb into [default: print the main page]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print the help of a verb
    #[command(after_help = examples::HELP)]
    Help {
        /// Verb, or topic of a guide (`topics` lists them), to print the help of [default: navicert itself]
        #[arg(value_name = "VERB")]
        verb: Vec<String>,
    },
    /// Print the version
    #[command(after_help = examples::VERSION)]
    Version,
    /// Print the names that complete an option of a kubeconfig, for completion scripts
    #[command(hide = true)]
    CompleteNames(CompleteNamesArgs),
}

// Arguments of the hidden verb that completion scripts call.
#[derive(Debug, Args)]
pub(crate) struct CompleteNamesArgs {
    /// Entries to list
    #[arg(value_enum)]
    pub(crate) kind: NameKind,

    /// Words of the command line that is completed
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

/// A list of a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NameKind {
    /// `contexts`
    Contexts,
    /// `clusters`
    Clusters,
    /// `users`
    Users,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum KubeconfigVerb {
    /// Print the merged kubeconfig with secrets redacted
    #[command(after_help = examples::KUBECONFIG_VIEW)]
    View(Box<ViewArgs>),
    /// Check whether a context is usable and report every problem
    #[command(after_help = examples::KUBECONFIG_CHECK)]
    Check(Box<CheckArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Print secrets unredacted
    #[arg(long)]
    pub(crate) raw: bool,

    /// Print only the selected context, its cluster and its user
    #[arg(long)]
    pub(crate) minify: bool,

    /// Make relative paths absolute, as a client resolves them
    #[arg(long)]
    pub(crate) resolve: bool,

    /// Redaction rules: `kube` redacts like kubectl; `hardened` also redacts exec, auth-provider and proxy-url secrets
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with_all = ["raw", "minify", "resolve"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Check every context instead of the selected one
    #[arg(long, conflicts_with = "context")]
    pub(crate) all_contexts: bool,
}

// Cluster and user to connect with, by kubectl's flag names.
//
// There is no `--token` and no `--password`: command lines are visible to every user of the machine.
// C146
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Kubeconfig file to use instead of `KUBECONFIG` or `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context to use instead of `current-context`
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Cluster entry to use instead of the context's
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,

    /// User entry to use instead of the context's
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Namespace to use instead of the context's
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Address of the API server
    #[arg(short, long, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// Server name to verify the server's certificate against
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,

    /// Skip verification of the server's certificate (insecure)
    #[arg(long)]
    pub(crate) insecure_skip_tls_verify: bool,

    /// Certificate authority file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate_authority: Option<String>,

    /// Client certificate file
    #[arg(long, value_name = "FILE")]
    pub(crate) client_certificate: Option<String>,

    /// Client key file
    #[arg(long, value_name = "FILE")]
    pub(crate) client_key: Option<String>,

    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    pub(crate) impersonate: Option<String>,

    /// UID to impersonate
    #[arg(long = "as-uid", value_name = "UID")]
    pub(crate) impersonate_uid: Option<String>,

    /// Group to impersonate; repeatable
    #[arg(long = "as-group", value_name = "GROUP")]
    pub(crate) impersonate_groups: Vec<String>,

    /// Extra attribute to impersonate; repeatable
    #[arg(long = "as-user-extra", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) impersonate_extra: Vec<(String, String)>,

    /// Proxy for requests to the server
    #[arg(long, value_name = "URL")]
    pub(crate) proxy_url: Option<String>,

    /// Do not request compressed responses
    #[arg(long)]
    pub(crate) disable_compression: bool,
}

/// Parses a duration such as `1m30s`, as Kubernetes does.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let read: navicert_types::time::Duration =
        text.parse().map_err(|error: navicert_types::time::DurationError| error.to_string())?;
    read.to_std().ok_or_else(|| "must not be negative".to_owned())
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Command;

    use super::{definition, program_name};

    #[test]
    fn usage_texts_name_the_command_as_it_is_typed() {
        for (program, name) in [
            ("navicert", "navicert"),
            ("/usr/local/bin/navicert", "navicert"),
            ("/usr/local/bin/kubectl-navicert", "kubectl navicert"),
            ("kubectl-navicert", "kubectl navicert"),
            ("/opt/kubectl-navicert/navicert-0.1", "navicert"),
        ] {
            assert_eq!(program_name(Some(&OsString::from(program))), name, "{program}");
        }
        assert_eq!(program_name(None), "navicert");
    }

    #[test]
    fn version_is_recognized_only_alone() {
        for (line, expected) in [
            ("navicert --version", true),
            ("navicert -V", true),
            ("navicert version", true),
            ("navicert", false),
            ("navicert version -o json", false),
            ("navicert --version whoami", false),
            ("navicert whoami --version", false),
        ] {
            let arguments = line.split(' ').map(OsString::from);
            assert_eq!(super::requests_version(arguments), expected, "{line}");
        }
    }

    #[test]
    fn json_is_recognized_on_command_lines_with_errors() {
        for (line, expected) in [
            ("navicert whoami -o json --typo", true),
            ("navicert -ojson", true),
            ("navicert --output json typo", true),
            ("navicert --output=json", true),
            ("navicert whoami --typo", false),
            ("navicert -o text --typo json", false),
            ("navicert run --typo -- kubectl get pods -o json", false),
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(super::requests_json(words), expected, "{line}");
        }
    }

    #[test]
    fn environment_table_is_aligned_in_80_columns() {
        let table = super::environment_table();
        assert!(table.lines().count() > crate::env::VARIABLES.len(), "{table}");
        for line in table.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            let is_name_alone = line.starts_with("  ") && !line.trim().contains(' ') && line.len() > 24;
            assert!(is_name_alone || line.get(..26).is_some_and(|head| head.ends_with(' ')), "{line}");
        }
        for variable in crate::env::VARIABLES {
            let words: Vec<&str> = table.split_whitespace().collect();
            let shown = words.join(" ");
            assert!(shown.contains(&format!("{} {}", variable.name, variable.meaning)), "{}", variable.name);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn verbs_keep_their_description_when_their_arguments_are_defined() {
        fn descriptions(command: &Command) -> Vec<(String, String)> {
            let own = |verb: &Command| verb.get_about().map(ToString::to_string).unwrap_or_default();
            let verbs = command.get_subcommands();
            verbs
                .flat_map(|verb| [vec![(verb.get_name().to_owned(), own(verb))], descriptions(verb)].concat())
                .collect()
        }
        let before = descriptions(&definition());
        let mut built = definition();
        built.build();
        let after = descriptions(&built);
        assert!(before.len() > 30, "{before:?}");
        for verb in &before {
            assert!(!verb.1.is_empty() && after.contains(verb), "{verb:?} is not in {after:?}");
        }
    }

    #[test]
    fn no_flag_takes_a_secret() {
        let mut definition = definition();
        // Arguments of verbs are defined when the verb is built.
        definition.build();
        let (mut commands, mut flags) = (vec![definition], 0_usize);
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments() {
                let name = argument.get_long().unwrap_or_default();
                assert!(!["token", "password", "pin"].contains(&name), "--{name} on {}", command.get_name());
                flags += usize::from(!name.is_empty());
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(flags > 100, "only {flags} flags were looked at");
    }
}
