//! `navicert serve proxy`.

use std::sync::Arc;

use navicert_client::transport::{BuildError, Transport};
use navicert_client::{Client, Config};
use navicert_server::ServerLimits;
use navicert_server::proxy::service_accounts::TokenReviewer;
use navicert_server::proxy::settings::{IdentityMode, ServiceAccountTokens};
use navicert_server::proxy::upstream_access;
use navicert_server::proxy::{Proxy, ProxyParts, ProxySettings};
use navicert_server::report::ServeCheckReport;
use navicert_server::startup::{ServerParts, ServerSpec};
use navicert_server::token_review_client::TokenReviewClient;

use super::{print_rbac, shared};
use crate::args::serve::{ProxyArgs, ProxyMode};
use crate::command::connect;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Maximum number of idle HTTP/1.1 connections to the API server.
const MAX_IDLE: usize = 256;

/// Opens, checks and runs the server.
pub(super) fn run(args: &ProxyArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    if args.rbac.print_rbac {
        return print_rbac::run(args, environment, output);
    }
    let parts = shared::open(&args.shared, None, environment, output)?;
    let settings = with_flags(parts.servers.proxy.clone(), args);
    let config = resolved(args, environment, output)?;
    let confinement = parts.confinement(&config.watched_files(), config.program());
    let upstreams = Upstreams::open(config, &settings).map_err(|error| connect::build_failure(&error))?;
    let proxy = Arc::new(build(settings, upstreams, &parts));
    if args.shared.check {
        let limits = parts.limits(ServerLimits::for_proxy());
        output.report(&ServeCheckReport::new(&parts.reloader, Some((limits, &confinement))))?;
        return Ok(Exit::Done);
    }
    let upstream_access = proxy.upstream_access();
    parts.health.register(Arc::new(upstream_access::CredentialCheck(Arc::clone(upstream_access))));
    parts.health.register(Arc::new(upstream_access::PermissionsCheck(Arc::clone(upstream_access))));
    let spec = ServerSpec {
        name: "proxy",
        limits: ServerLimits::for_proxy(),
        upstream_access: Some(Arc::clone(upstream_access)),
        handler: proxy,
        reloadables: Vec::new(),
        confinement,
    };
    shared::serve(parts, spec, &args.shared, output)
}

/// The settings with the command line's flags applied.
pub(super) fn with_flags(mut settings: ProxySettings, args: &ProxyArgs) -> ProxySettings {
    settings.mode = match (args.mode, settings.mode) {
        (Some(ProxyMode::Impersonation), _) => IdentityMode::Impersonation,
        (Some(ProxyMode::RequestHeader), IdentityMode::Impersonation) => {
            IdentityMode::RequestHeader(Default::default())
        }
        (Some(ProxyMode::RequestHeader) | None, mode) => mode,
    };
    settings
}

fn build(settings: ProxySettings, upstreams: Upstreams, parts: &ServerParts) -> Proxy {
    let is_reviewed = settings.service_account_tokens != ServiceAccountTokens::Reject;
    let reviewer = is_reviewed.then(|| {
        let timer = Arc::clone(&parts.timer);
        Arc::new(TokenReviewClient::for_api_server(upstreams.authenticated.clone(), Vec::new(), timer))
            as Arc<dyn TokenReviewer>
    });
    let proxy_parts = ProxyParts {
        authenticator: Arc::clone(parts.reloader.authenticator()),
        upstream: upstreams.authenticated,
        anonymous_upstream: Some(upstreams.anonymous),
        reviewer,
        observer: Arc::new(parts.audit.clone()),
        clock: Arc::clone(&parts.clock),
        timer: Arc::clone(&parts.timer),
    };
    Proxy::new(settings, proxy_parts)
}

/// The configuration of the API server's clients, which must be usable for impersonation.
fn resolved(args: &ProxyArgs, environment: &Environment, output: &mut Output) -> Result<Config, Failure> {
    let options = connect::options(&args.connection, args.plugins.kuberc.as_deref(), environment);
    let config = connect::resolve(&options, output)?;
    if !config.user().impersonate.is_empty() {
        return Err(Failure::bad_input(
            "the proxy's kubeconfig user sets `as`, which conflicts with impersonating clients; remove `as`",
        ));
    }
    if !config.is_https() {
        return Err(Failure::bad_input(
            "API server URL must be https: credentials are not sent over plain http",
        ));
    }
    Ok(config)
}

/// The two clients of the API server.
struct Upstreams {
    /// Client with the proxy's credential.
    authenticated: Transport,
    /// Client without a credential.
    // S277
    anonymous: Transport,
}

impl Upstreams {
    fn open(config: Config, settings: &ProxySettings) -> Result<Self, BuildError> {
        let builder = Client::builder(config)
            // Bodies are forwarded unchanged: compression is negotiated between client and server.
            .compression(false)
            .http2(settings.upstream_http2)
            .max_idle(MAX_IDLE)
            // Requests keep the `User-Agent` of the client.
            .user_agent(None);
        let authenticated = builder.clone().build()?.into();
        let anonymous = builder.anonymous().build()?.into();
        Ok(Upstreams { authenticated, anonymous })
    }
}
