//! The common parts of the three programs: command line, kubelet protocol, docker helper protocol, `--explain` and error
//! output.

mod flags;
mod helper;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use navicert_image::author::read_request;
use navicert_plugin::Environment;
use navicert_types::image_credential::{CredentialProviderRequest, WireVersion};
use navicert_types::{Clock, Secret, error_chain, redact};

use crate::acr::{Acr, CloudConfig, IdentityBindings, Mirrors};
use crate::context::ProviderContext;
use crate::ecr::Ecr;
use crate::error::RegistryError;
use crate::gcp::{AuthFlow, Federation, Gcp};
use crate::host::EcrHost;
use crate::http::Sleep;
use crate::provider::{ProviderCredentials, RegistryProvider, provide};

pub(crate) use flags::Flags;

/// The provider program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// `ecr-credential-provider`
    Ecr,
    /// `auth-provider-gcp`, `gcp-credential-provider`
    Gcp,
    /// `acr-credential-provider`
    Acr,
}

/// A provider as a program. Each binary contains only one provider, which saves memory on nodes.
pub(crate) trait ProviderProgram: RegistryProvider + Sized {
    /// The program.
    const KIND: ProgramKind;

    /// Configures the provider from the command line and the environment.
    ///
    /// # Errors
    /// If they contradict themselves, or a file they name is invalid.
    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError>;
}

/// How a program was started.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The program name. With the prefix `docker-credential-` it acts as a docker credential helper.
    pub name: OsString,
    /// Its arguments, without the program name.
    pub arguments: Vec<OsString>,
    /// Its environment.
    pub environment: Environment,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// Sleeps between attempts.
    pub sleep: Box<dyn Sleep>,
}

/// The output of a program.
#[derive(Debug, Default)]
pub(crate) struct ProviderOutput {
    /// Standard output; may contain a password.
    pub stdout: Secret<Vec<u8>>,
    /// Standard error; never contains a password.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

/// Runs a program.
pub(crate) fn run<P: ProviderProgram>(invocation: Invocation, stdin: &mut dyn Read) -> ProviderOutput {
    let name = Path::new(&invocation.name).file_name().unwrap_or(OsStr::new("provider"));
    let name = name.to_string_lossy().into_owned();
    if name.starts_with("docker-credential-") {
        return helper::run::<P>(&name, invocation, stdin);
    }
    run_provider::<P>(&name, invocation, stdin).unwrap_or_else(|error| error_output(&name, &error, &[]))
}

fn run_provider<P: ProviderProgram>(
    name: &str,
    invocation: Invocation,
    stdin: &mut dyn Read,
) -> Result<ProviderOutput, RegistryError> {
    let which = P::KIND;
    let flags = Flags::parse(which, &invocation.arguments)?;
    if flags.help {
        return Ok(ProviderOutput {
            stdout: Secret::new(flags::usage(which).into_bytes()),
            ..ProviderOutput::default()
        });
    }
    if flags.version {
        let version = format!("{name} {} (navicert)\n", env!("CARGO_PKG_VERSION"));
        return Ok(ProviderOutput { stdout: Secret::new(version.into_bytes()), ..ProviderOutput::default() });
    }
    let context =
        ProviderContext::new(invocation.environment, invocation.clock, invocation.sleep, flags.timeout);
    if let Some(image) = flags.explain.clone() {
        return Ok(explain::<P>(&flags, &context, &image, stdin));
    }
    let answered = read_request(stdin).map_err(RegistryError::from).and_then(|(request, version)| {
        let credentials = provide_with::<P>(&flags, &context, &request)?;
        Ok(credentials.into_response()?.encode(version))
    });
    Ok(match answered {
        Ok(stdout) => ProviderOutput { stdout, stderr: warnings(name, &context), code: 0 },
        Err(error) => error_output(name, &error, &context.journal.warnings()),
    })
}

/// Configures a provider and handles a request.
fn provide_with<P: ProviderProgram>(
    flags: &Flags,
    context: &ProviderContext,
    request: &CredentialProviderRequest,
) -> Result<ProviderCredentials, RegistryError> {
    provide(&P::from_flags(flags, context)?, context, request)
}

impl ProviderProgram for Ecr {
    const KIND: ProgramKind = ProgramKind::Ecr;

    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError> {
        let custom_hosts = flags.registry_hosts(context).map(|entry| {
            let pair = entry.split_once('=').filter(|(_, region)| EcrHost::in_region(region).is_some());
            let (host, region) = pair.ok_or_else(|| {
                let example = "expected HOST=REGION, for example `registry.example=us-west-2`";
                RegistryError::Usage(format!("invalid registry host `{entry}`: {example}"))
            })?;
            Ok((host.to_ascii_lowercase(), region.to_owned()))
        });
        Ok(Ecr { custom_hosts: custom_hosts.collect::<Result<_, RegistryError>>()? })
    }
}

impl ProviderProgram for Gcp {
    const KIND: ProgramKind = ProgramKind::Gcp;

    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError> {
        let flow = flags.value("authFlow").map(AuthFlow::parse).transpose()?.unwrap_or_default();
        let federation = match (flags.value("identity-provider"), flags.value("project-id")) {
            (Some(provider), Some(project)) => {
                Some(Federation { identity_provider: provider.to_owned(), project: project.to_owned() })
            }
            (Some(_), None) => {
                return Err(RegistryError::Usage("--identity-provider requires --project-id".to_owned()));
            }
            (None, _) => None,
        };
        let custom_hosts = flags.registry_hosts(context).map(str::to_ascii_lowercase).collect();
        Ok(Gcp { flow, federation, custom_hosts })
    }
}

impl ProviderProgram for Acr {
    const KIND: ProgramKind = ProgramKind::Acr;

    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError> {
        let config = match flags.positional.as_slice() {
            [path] => CloudConfig::load(context, Path::new(path))?,
            [] if flags.from_environment => match context.variable("NAVICERT_ACR_CONFIG") {
                Some(path) => CloudConfig::load(context, Path::new(path))?,
                None => CloudConfig::from_environment(context),
            },
            [] => return Err(RegistryError::Usage("config file is not specified".to_owned())),
            _ => return Err(RegistryError::Usage("more than one config file is specified".to_owned())),
        };
        let (mirrors, invalid) = Mirrors::parse(flags.value("registry-mirror").unwrap_or_default());
        for entry in invalid {
            context.journal.warn(format!("ignoring `{entry}` in --registry-mirror: not `source:mirror`"));
        }
        Ok(Acr { config, mirrors, bindings: identity_bindings(flags)? })
    }
}

fn identity_bindings(flags: &Flags) -> Result<Option<IdentityBindings>, RegistryError> {
    let Some(server_name) = flags.value("ib-sni-name") else { return Ok(None) };
    let address = flags.value("ib-apiserver-ip").and_then(|address| address.parse().ok());
    let address = address.ok_or_else(|| {
        RegistryError::Usage("--ib-sni-name requires --ib-apiserver-ip with an IP address".to_owned())
    })?;
    let mut bindings = IdentityBindings::new(server_name.to_owned(), address);
    bindings.default_client = flags.value("ib-default-client-id").map(str::to_owned);
    bindings.default_tenant = flags.value("ib-default-tenant-id").map(str::to_owned);
    if let Some(path) = flags.value("ib-ca-file") {
        bindings = bindings.with_authority(Path::new(path));
    }
    Ok(Some(bindings))
}

/// Prints every step on standard output; `-` reads the request from standard input.
fn explain<P: ProviderProgram>(
    flags: &Flags,
    context: &ProviderContext,
    image: &str,
    stdin: &mut dyn Read,
) -> ProviderOutput {
    let request = if image == "-" {
        read_request(stdin).map(|(request, _)| request).map_err(RegistryError::from)
    } else {
        Ok(CredentialProviderRequest { image: image.to_owned(), ..CredentialProviderRequest::default() })
    };
    let answered = request.and_then(|request| {
        let credentials = provide_with::<P>(flags, context, &request)?;
        let response = credentials.into_response()?;
        context.journal.note("answer", format!("{} bytes", response.encode(WireVersion::V1).expose().len()));
        Ok(())
    });
    let code = answered.as_ref().map_or_else(RegistryError::exit_code, |()| 0);
    if let Err(error) = answered {
        context.journal.note("failed", error_chain(&error));
        if let Some(hint) = error.hint() {
            context.journal.note("hint", hint);
        }
    }
    ProviderOutput {
        stdout: Secret::new(context.journal.to_string().into_bytes()),
        stderr: String::new(),
        code,
    }
}

fn warnings(name: &str, context: &ProviderContext) -> String {
    context.journal.warnings().iter().map(|warning| format!("{name}: warning: {warning}\n")).collect()
}

/// The output for an error: message, causes and hint.
fn error_output(name: &str, error: &RegistryError, warnings: &[String]) -> ProviderOutput {
    let mut stderr: String = warnings.iter().map(|warning| format!("{name}: warning: {warning}\n")).collect();
    stderr.push_str(&format!("{name}: {}\n", redact::terminal(&error_chain(error))));
    if let Some(hint) = error.hint() {
        stderr.push_str(&format!("{name}: hint: {hint}\n"));
    }
    ProviderOutput { stdout: Secret::default(), stderr, code: error.exit_code() }
}
