//! `navicert serve proxy`.

use std::sync::Arc;

use navicert_client::credential::{Credential, Fixed};
use navicert_client::in_cluster;
use navicert_client::kubeconfig::{Disk, Effective};
use navicert_client::transport::{self, BuildError, Transport};
use navicert_server::Limits;
use navicert_server::files::Follows;
use navicert_server::proxy::service_accounts::ReviewToken;
use navicert_server::proxy::settings::{Mode, ServiceAccountTokens};
use navicert_server::proxy::standing::{self, Looking};
use navicert_server::proxy::{Parts, Proxy, Settings};
use navicert_server::token_review_client::TokenReviewClient;

use super::shared::Shared;
use super::{bad, check};
use crate::args::serve::{ProxyArgs, ProxyMode};
use crate::command::connect;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Unused connections to the API server that are kept, where it speaks HTTP/1.1.
const MAX_IDLE: usize = 256;

/// Opens, checks, serves.
pub(super) fn run(args: &ProxyArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let shared = Shared::open(&args.shared, None, environment, output)?;
    let settings = with_flags(shared.servers.proxy.clone(), args);
    let effective = selected(args, environment, output)?;
    let ways = Ways::open(&effective, &settings, args, environment).map_err(|error| bad(&error))?;
    let proxy = Arc::new(build(settings, ways, &shared));
    if args.shared.check {
        return check::passed(&shared.reloader, output);
    }
    let standing = proxy.standing();
    shared.health.join(Arc::new(standing::Credential(Arc::clone(standing))));
    shared.health.join(Arc::new(standing::Permissions(Arc::clone(standing))));
    let looking: Arc<dyn Follows> = Arc::new(Looking::new(Arc::clone(standing)));
    shared.serve(("proxy", Limits::of_proxy()), &args.shared, proxy, vec![looking], output)
}

fn with_flags(mut settings: Settings, args: &ProxyArgs) -> Settings {
    settings.mode = match (args.mode, settings.mode) {
        (Some(ProxyMode::Impersonation), _) => Mode::Impersonation,
        (Some(ProxyMode::RequestHeader), Mode::Impersonation) => Mode::RequestHeader(Default::default()),
        (Some(ProxyMode::RequestHeader) | None, mode) => mode,
    };
    settings
}

fn build(settings: Settings, ways: Ways, shared: &Shared) -> Proxy {
    let is_reviewed = settings.service_account_tokens != ServiceAccountTokens::Reject;
    let reviewer = is_reviewed.then(|| {
        let timer = Arc::clone(&shared.timer);
        Arc::new(TokenReviewClient::of_api_server(ways.own.clone(), Vec::new(), timer))
            as Arc<dyn ReviewToken>
    });
    let parts = Parts {
        live: Arc::clone(shared.reloader.live()),
        upstream: ways.own,
        bare: Some(ways.bare),
        reviewer,
        witness: Arc::new(shared.audit.clone()),
        clock: Arc::clone(&shared.clock),
        timer: Arc::clone(&shared.timer),
    };
    Proxy::new(settings, parts)
}

/// What the kubeconfig selects; without one, the pod's own service account.
fn selected(args: &ProxyArgs, environment: &Environment, output: &mut Output) -> Result<Effective, Failure> {
    let patient = connect::patient(&args.connection, &args.plugins, environment);
    let merged = crate::command::kubeconfig::merged(&args.connection, environment, output)?;
    let pod = if merged.origins().is_empty() {
        in_cluster::configuration(&patient.pod, &patient.overrides, &Disk)
    } else {
        None
    };
    let effective = match pod {
        Some(effective) => effective,
        None => crate::command::kubeconfig::selected(&args.connection, environment, output)?,
    };
    if !effective.user.impersonate.is_empty() {
        return Err(Failure::bad_input(
            "the proxy's own user has `as`: it would act as somebody before it acts as its clients",
        ));
    }
    if !effective.is_https() {
        return Err(Failure::bad_input("the API server's address is not https: no credential is sent to it"));
    }
    Ok(effective)
}

/// Two ways to one API server.
struct Ways {
    /// With the proxy's own credential.
    own: Transport,
    /// With none (S277).
    bare: Transport,
}

impl Ways {
    fn open(
        effective: &Effective,
        settings: &Settings,
        args: &ProxyArgs,
        environment: &Environment,
    ) -> Result<Self, BuildError> {
        let patient = connect::patient(&args.connection, &args.plugins, environment);
        let change = |of: transport::Settings| transport::Settings {
            // Bodies are passed on as they come: compressing is between the client and the server.
            compression: false,
            http2: of.http2 && settings.upstream_http2,
            max_idle: MAX_IDLE,
            // A client's own name for itself, or none.
            user_agent: None,
            ..of
        };
        let own =
            transport::connect_with(effective, &patient.exec, &patient.around, &patient.transport, change)?;
        let nobody = Arc::new(Fixed::new(Credential::anonymous()));
        let bare = change(transport::Settings::of(effective, &patient.transport)?);
        let bare = Transport::new(bare, nobody, transport::Around::system())?;
        Ok(Ways { own, bare })
    }
}
