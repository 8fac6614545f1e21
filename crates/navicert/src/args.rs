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

/// Every Kubernetes credential, on every side.
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

    /// How results are printed
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Format,
}

impl Cli {
    /// The command line of this process, or why it is none (help and version are such reasons).
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let definition = definition().bin_name(typed_name(arguments.first()));
        Cli::from_arg_matches(&definition.try_get_matches_from(arguments)?)
    }
}

/// What usage texts call the program: as a kubectl plugin it is `kubectl navicert`, whatever path kubectl ran it by.
fn typed_name(program: Option<&OsString>) -> &'static str {
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

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; where the result is a file, YAML
    #[default]
    #[value(alias = "yaml")]
    Text,
    /// For machines
    Json,
}

/// Whose rules decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Exactly as Kubernetes decides
    Kube,
    /// Safer where Kubernetes is not
    Hardened,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command that uses a credential without ever seeing it
    #[command(after_help = run::RUN_HELP)]
    Run(Box<run::RunArgs>),
    /// Keep a gateway open for commands that share it
    #[command(after_help = run::GATEWAY_HELP)]
    Gateway(Box<run::GatewayArgs>),
    /// Remove what a killed gateway leaves behind
    #[command(hide = true)]
    GatewayGuard {
        /// The gateway's folder
        folder: PathBuf,
    },
    /// Show and check kubeconfig files
    #[command(subcommand)]
    Kubeconfig(KubeconfigVerb),
    /// Ask a cluster who it takes you for
    Whoami(Box<client::WhoamiArgs>),
    /// Find out what is wrong with a context: every step from the kubeconfig to the server's answer
    #[command(after_help = "\
Example: navicert doctor prod

The last line is the one thing to do. A credential plugin is run if the server can be reached. No secret is shown.")]
    Doctor(Box<client::DoctorArgs>),
    /// Check credential plugins, and decide as clients do about them
    #[command(subcommand)]
    ExecPlugin(exec_plugin::ExecPluginVerb),
    /// Check authentication configurations, and tell whom a token stands for
    #[command(subcommand)]
    Authn(authn::AuthnVerb),
    /// Check and evaluate expressions as Kubernetes does
    #[command(subcommand)]
    Cel(cel::CelVerb),
    /// Image credentials: what a kubelet would pull with, and why
    #[command(subcommand)]
    Image(Box<image::ImageVerb>),
    /// Keys that stay in their device: show, try and serve them
    #[command(subcommand)]
    Signer(signer::SignerVerb),
    /// Servers: structured authentication for API servers, nginx and Envoy
    #[command(after_help = serve::HELP)]
    Serve(Box<serve::ServeArgs>),
    /// Print a completion script for a shell
    #[command(after_help = "Example: navicert completions bash > /etc/bash_completion.d/navicert")]
    Completions {
        /// The shell that will read the script
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Folder to write into, one page per verb; without it the main page goes to standard output
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubeconfigVerb {
    /// Print the merged kubeconfig, secrets hidden
    View(Box<ViewArgs>),
    /// Say whether a context gives a usable client, and what is wrong if not
    Check(Box<CheckArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Show secrets as they are
    #[arg(long)]
    pub(crate) raw: bool,

    /// Only the selected context and what it uses
    #[arg(long)]
    pub(crate) minify: bool,

    /// Relative paths made absolute, as a client would use them
    #[arg(long)]
    pub(crate) resolve: bool,

    /// Whose redaction: `kube` hides what kubectl hides, `hardened` also exec arguments and environment,
    /// auth-provider configuration and credentials in proxy addresses
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with_all = ["raw", "minify", "resolve"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Check every context, not only the selected one
    #[arg(long, conflicts_with = "context")]
    pub(crate) all_contexts: bool,
}

/// Which cluster, as whom: kubectl's own flag names (client-credentials.md C146).
///
/// There is no `--token` and no `--password`: an argument is visible to every user of the machine.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Kubeconfig file to use, alone, instead of `KUBECONFIG` or `~/.kube/config`
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

    /// Name the server's certificate is checked for
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,

    /// Do not check the server's certificate (dangerous)
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

    /// Do not ask the server for compressed answers
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

    use super::{definition, typed_name};

    #[test]
    fn usage_texts_name_the_command_as_it_is_typed() {
        for (program, name) in [
            ("navicert", "navicert"),
            ("/usr/local/bin/navicert", "navicert"),
            ("/usr/local/bin/kubectl-navicert", "kubectl navicert"),
            ("kubectl-navicert", "kubectl navicert"),
            ("/opt/kubectl-navicert/navicert-0.1", "navicert"),
        ] {
            assert_eq!(typed_name(Some(&OsString::from(program))), name, "{program}");
        }
        assert_eq!(typed_name(None), "navicert");
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
