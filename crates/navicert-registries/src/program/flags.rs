//! Command-line flags, compatible with the upstream programs: `--flag value`, `--flag=value`, `-f value`. Upstream's
//! logging flags are accepted and ignored.

use std::ffi::OsString;
use std::time::Duration;

use super::ProgramKind;
use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::http::TOTAL_TIMEOUT;

/// The parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(super) help: bool,
    pub(super) version: bool,
    pub(super) explain: Option<String>,
    pub(super) timeout: Duration,
    pub(super) positional: Vec<String>,
    /// Whether to read the configuration from environment variables.
    pub(super) from_environment: bool,
    values: Vec<(&'static str, String)>,
}

/// A flag's long name, its letter, and the program it belongs to.
type FlagSpec = (&'static str, &'static str, Option<ProgramKind>);

/// Flags with a value.
const VALUE_FLAGS: [FlagSpec; 12] = [
    ("explain", "", None),
    ("timeout", "", None),
    ("registry-host", "", None),
    ("authFlow", "a", Some(ProgramKind::Gcp)),
    ("identity-provider", "", Some(ProgramKind::Gcp)),
    ("project-id", "", Some(ProgramKind::Gcp)),
    ("registry-mirror", "r", Some(ProgramKind::Acr)),
    ("ib-sni-name", "", Some(ProgramKind::Acr)),
    ("ib-default-client-id", "", Some(ProgramKind::Acr)),
    ("ib-default-tenant-id", "", Some(ProgramKind::Acr)),
    ("ib-apiserver-ip", "", Some(ProgramKind::Acr)),
    ("ib-ca-file", "", Some(ProgramKind::Acr)),
];

/// Upstream's logging flags, which are ignored.
const IGNORED_VALUE_FLAGS: [&str; 8] = [
    "v",
    "vmodule",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "stderrthreshold",
    "log-flush-frequency",
    "logging-format",
];
const IGNORED_SWITCHES: [&str; 5] =
    ["logtostderr", "alsologtostderr", "skip_headers", "skip_log_headers", "one_output"];

impl Flags {
    /// The flags of a program without arguments.
    pub(super) fn none() -> Self {
        Flags {
            help: false,
            version: false,
            explain: None,
            timeout: TOTAL_TIMEOUT,
            positional: Vec::new(),
            from_environment: true,
            values: Vec::new(),
        }
    }

    /// Parses the command line.
    pub(super) fn parse(which: ProgramKind, arguments: &[OsString]) -> Result<Self, RegistryError> {
        let invalid = |what: String| RegistryError::Usage(format!("{what}; see `--help`"));
        let mut flags = Flags { from_environment: false, ..Flags::none() };
        let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                flags.positional.push(argument);
                continue;
            };
            let (name, mut inline) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (flag.to_owned(), None),
            };
            match name.as_str() {
                "help" | "h" => flags.help = true,
                "version" => flags.version = true,
                "from-environment" if which == ProgramKind::Acr => flags.from_environment = true,
                name if IGNORED_SWITCHES.contains(&name) => {}
                name => {
                    let mut value = || inline.take().or_else(|| arguments.next());
                    let missing = || invalid(format!("missing value for `{argument}`"));
                    if IGNORED_VALUE_FLAGS.contains(&name) {
                        value().ok_or_else(missing)?;
                        continue;
                    }
                    let mine = |(_, _, program): &&FlagSpec| program.is_none_or(|program| program == which);
                    let fits =
                        |(long, short, _): &&FlagSpec| *long == name || (*short == name && !short.is_empty());
                    let known = VALUE_FLAGS.iter().filter(mine).find(fits);
                    let (long, ..) = known.ok_or_else(|| invalid(format!("unknown flag `{argument}`")))?;
                    flags.set(long, value().ok_or_else(missing)?)?;
                }
            }
        }
        if which == ProgramKind::Gcp {
            // Upstream's only command is optional here.
            flags.positional.retain(|word| word != "get-credentials");
        }
        if which != ProgramKind::Acr
            && let Some(word) = flags.positional.first()
        {
            return Err(invalid(format!("unknown command `{word}`")));
        }
        Ok(flags)
    }

    fn set(&mut self, name: &'static str, value: String) -> Result<(), RegistryError> {
        match name {
            "explain" => self.explain = Some(value),
            "timeout" => {
                let parsed = value
                    .parse::<navicert_types::time::Duration>()
                    .ok()
                    .and_then(navicert_types::time::Duration::to_std);
                let invalid = || {
                    RegistryError::Usage(format!(
                        "invalid timeout `{value}`: expected a duration such as `30s`"
                    ))
                };
                self.timeout = parsed.filter(|time| !time.is_zero()).ok_or_else(invalid)?;
            }
            _ => self.values.push((name, value)),
        }
        Ok(())
    }

    /// The last value given for a flag.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let given = self.values.iter().rev().find(|(known, _)| *known == name);
        given.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All hosts of `--registry-host` and of the environment.
    pub(super) fn registry_hosts<'a>(
        &'a self,
        context: &'a ProviderContext,
    ) -> impl Iterator<Item = &'a str> {
        let given = self.values.iter().filter(|(known, _)| *known == "registry-host");
        let given = given.map(|(_, value)| value.as_str());
        let variable = context.variable("NAVICERT_REGISTRY_HOSTS").unwrap_or_default();
        let all = given.chain(std::iter::once(variable)).flat_map(|text| text.split(','));
        all.map(str::trim).filter(|entry| !entry.is_empty())
    }
}

/// The text of `--help`.
pub(super) fn usage(which: ProgramKind) -> String {
    let (head, own) = match which {
        ProgramKind::Ecr => (
            "ecr-credential-provider: kubelet image credential provider for Amazon ECR\n\n\
             usage: ecr-credential-provider [flags] < CredentialProviderRequest\n",
            "  --registry-host HOST=REGION  Treat HOST as an ECR registry in REGION (repeatable)\n",
        ),
        ProgramKind::Gcp => (
            "auth-provider-gcp: kubelet image credential provider for Google registries\n\n\
             usage: auth-provider-gcp get-credentials [flags] < CredentialProviderRequest\n",
            "  -a, --authFlow FLOW          Source of logins: gcr, dockercfg or dockercfg-url [default: gcr]\n  \
               --identity-provider NAME     Exchange service account tokens (requires --project-id)\n  \
               --project-id PROJECT         Project of the workload identity pool\n  \
               --registry-host HOST         Send the node's token to HOST too (repeatable)\n",
        ),
        ProgramKind::Acr => (
            "acr-credential-provider: kubelet image credential provider for Azure Container Registry\n\n\
             usage: acr-credential-provider CONFIG [flags] < CredentialProviderRequest\n",
            "  -r, --registry-mirror S:M,…  Use registry M as a mirror of host S\n  \
               --from-environment           Read the AZURE_ variables instead of CONFIG\n  \
               --ib-sni-name NAME           Identity bindings: server name of the endpoint\n  \
               --ib-apiserver-ip ADDRESS    Identity bindings: IP address of the endpoint\n  \
               --ib-default-client-id ID    Identity bindings: client ID for service accounts without annotation\n  \
               --ib-default-tenant-id ID    Identity bindings: tenant ID for service accounts without annotation\n  \
               --ib-ca-file FILE            Identity bindings: cluster CA [default: /etc/kubernetes/certs/ca.crt]\n",
        ),
    };
    format!(
        "{head}\nflags:\n{own}  --explain IMAGE              Print every step without passwords; `-` reads the request from stdin\n  \
           --timeout DURATION           Time limit of the whole run [default: 50s]\n  \
           --version, --help\n\n\
         With the program name docker-credential-ANYTHING it acts as a docker credential helper. See docs/registries.md.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(which: ProgramKind, arguments: &[&str]) -> Result<Flags, String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        Flags::parse(which, &arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn accepts_upstream_command_lines() {
        // I184, I195
        let flags =
            parse(ProgramKind::Gcp, &["get-credentials", "--v=3", "-a", "dockercfg", "--authFlow=gcr"])
                .unwrap();
        assert_eq!(flags.value("authFlow"), Some("gcr"));
        let flags =
            parse(ProgramKind::Acr, &["/etc/kubernetes/azure.json", "-r=a:b", "-v", "2", "--logtostderr"])
                .unwrap();
        assert_eq!(
            (flags.positional.as_slice(), flags.value("registry-mirror")),
            (&["/etc/kubernetes/azure.json".to_owned()][..], Some("a:b"))
        );
        assert_eq!(parse(ProgramKind::Ecr, &["--timeout", "5s"]).unwrap().timeout, Duration::from_secs(5));
        for (which, arguments, said) in [
            (ProgramKind::Ecr, &["--authFlow=gcr"][..], "unknown flag"),
            (ProgramKind::Ecr, &["get-credentials"], "unknown command"),
            (ProgramKind::Gcp, &["--authFlow"], "missing value for"),
            (ProgramKind::Ecr, &["--timeout=0s"], "invalid timeout"),
            (ProgramKind::Ecr, &["-"], "unknown flag"),
        ] {
            let error = parse(which, arguments).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn help_lists_every_flag() {
        for which in [ProgramKind::Ecr, ProgramKind::Gcp, ProgramKind::Acr] {
            let text = usage(which);
            for (long, _, program) in VALUE_FLAGS {
                let listed = text.contains(&format!("--{long}"));
                let expected = program.is_none_or(|program| program == which)
                    && (long != "registry-host" || which != ProgramKind::Acr);
                assert_eq!(listed, expected, "{which:?} --{long}");
            }
        }
    }
}
