//! The command line: every verb, flag and help text. Parsing only; `command/` does the work.

pub(crate) mod authn;
pub(crate) mod cel;
pub(crate) mod client;
pub(crate) mod exec_plugin;
pub(crate) mod image;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod signer;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::{env, exit};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().effects(Effects::BOLD))
    .valid(AnsiColor::Green.on_default())
    .invalid(AnsiColor::Yellow.on_default());

/// Kubernetes credentials: for clients, API servers, image pulls and hardware keys.
#[derive(Debug, Parser)]
#[command(
    name = "navicert",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NAVICERT_COMMIT"), ")"),
    styles = STYLES,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = exit::HELP,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Format,
}

impl Cli {
    /// Parses the command line of this process; help and version are returned as errors, as clap does.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let definition = definition().bin_name(program_name(arguments.first()));
        Cli::from_arg_matches(&definition.try_get_matches_from(arguments)?)
    }
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
    let variables =
        env::VARIABLES.iter().map(|variable| format!("  {:<22} {}\n", variable.name, variable.meaning));
    Cli::command().after_long_help(format!(
        "{}\n\nEnvironment:\n{}",
        exit::HELP,
        variables.collect::<String>()
    ))
}

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable; YAML if the result is a file
    #[default]
    #[value(alias = "yaml")]
    Text,
    /// Machine-readable
    Json,
}

/// Rules to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Exactly the rules of Kubernetes
    Kube,
    /// Stricter than Kubernetes where its rules are unsafe
    Hardened,
}

#[derive(Debug, Subcommand)]
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
    /// Show and check kubeconfig files
    #[command(subcommand)]
    Kubeconfig(KubeconfigVerb),
    /// Show the user a cluster authenticates you as
    Whoami(Box<client::WhoamiArgs>),
    /// Diagnose a context, from its kubeconfig to the server's response
    #[command(after_help = "\
Example: navicert doctor prod

The last line says what to fix first. A credential plugin is run if the server is reachable. Secrets are never shown.")]
    Doctor(Box<client::DoctorArgs>),
    /// Check credential plugins and their output
    #[command(subcommand)]
    ExecPlugin(exec_plugin::ExecPluginVerb),
    /// Check, test and explain structured authentication configurations
    #[command(subcommand)]
    Authn(authn::AuthnVerb),
    /// Check and evaluate CEL expressions as Kubernetes does
    #[command(subcommand)]
    Cel(cel::CelVerb),
    /// Get, check and explain image pull credentials
    #[command(subcommand)]
    Image(Box<image::ImageVerb>),
    /// List, test and serve PKCS#11 keys
    #[command(subcommand)]
    Signer(signer::SignerVerb),
    /// Serve structured authentication to API servers, nginx and Envoy
    #[command(after_help = serve::HELP)]
    Serve(Box<serve::ServeArgs>),
    /// Verify server certificates as a client does
    #[command(hide = true)]
    TlsVerify(exec_plugin::BatchArgs),
    /// Print a shell completion script
    #[command(after_help = "Example: navicert completions bash > /etc/bash_completion.d/navicert")]
    Completions {
        /// Shell to print the script for
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print or write the manual pages
    Man {
        /// Directory to write one page per verb into [default: print the main page]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubeconfigVerb {
    /// Print the merged kubeconfig with secrets redacted
    View(Box<ViewArgs>),
    /// Check whether a context is usable and report every problem
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

/// Cluster and user to connect with, by kubectl's flag names.
///
/// There is no `--token` and no `--password`: command lines are visible to every user of the machine.
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

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

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
    fn the_command_line_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn no_flag_takes_a_secret() {
        let mut commands = vec![definition()];
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments() {
                let name = argument.get_long().unwrap_or_default();
                assert!(!["token", "password", "pin"].contains(&name), "--{name} on {}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
