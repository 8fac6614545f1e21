//! `navicert serve webhook`.

use std::sync::Arc;

use navicert_server::ServerLimits;
use navicert_server::client_auth::{ClientAuth, TokenFile};
use navicert_server::reload::Reloadable;
use navicert_server::report::ServeCheckReport;
use navicert_server::startup::{ServerParts, ServerSpec};
use navicert_server::webhook::Webhook;

use super::{bad_input, print_kubeconfig, shared, usage_error};
use crate::args::serve::{ClientAuthArgs, WebhookArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Opens, checks and runs the server.
pub(super) fn run(
    args: &WebhookArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let parts = shared::open(&args.shared, Some(&args.callers), environment, output)?;
    let (handler, reloadables) = build(args, &parts)?;
    if args.kubeconfig.print_kubeconfig {
        return print_kubeconfig::run(&args.kubeconfig, &parts, output);
    }
    let other_files: Vec<_> = reloadables.iter().flat_map(|reloadable| reloadable.watched_files()).collect();
    let confinement = parts.confinement(&other_files, None);
    if args.shared.check {
        let limits = parts.limits(ServerLimits::default());
        output.report(&ServeCheckReport::new(&parts.reloader, Some((limits, &confinement))))?;
        return Ok(Exit::Done);
    }
    let spec = ServerSpec {
        name: "webhook",
        limits: ServerLimits::default(),
        handler,
        reloadables,
        upstream_access: None,
        confinement,
    };
    shared::serve(parts, spec, &args.shared, output)
}

type Built = (Arc<Webhook>, Vec<Arc<dyn Reloadable>>);

fn build(args: &WebhookArgs, parts: &ServerParts) -> Result<Built, Failure> {
    let (callers, reloadables) = client_auth(&args.callers, parts)?;
    let mut settings = parts.servers.webhook.clone();
    if !args.api_audiences.is_empty() {
        settings.server_audiences.clone_from(&args.api_audiences);
    }
    let handler = Webhook::new(
        Arc::clone(parts.reloader.authenticator()),
        callers,
        settings,
        parts.audit.clone(),
        Arc::clone(&parts.clock),
    );
    Ok((Arc::new(handler), reloadables))
}

/// Client authentication is required: an open webhook lets an attacker test stolen tokens.
// S223
fn client_auth(
    args: &ClientAuthArgs,
    parts: &ServerParts,
) -> Result<(ClientAuth, Vec<Arc<dyn Reloadable>>), Failure> {
    let servers = &parts.servers;
    if args.allow_any_caller {
        return Ok((ClientAuth::allow_all(), Vec::new()));
    }
    let token = servers.bearer_token_file.as_deref().map(TokenFile::open).transpose();
    let token = token.map_err(|error| bad_input(&error))?;
    let names = servers.client_ca_file.as_ref().map(|_| servers.client_allowed_names.clone());
    if names.is_some() && parts.tls.is_none() {
        return Err(usage_error(
            "--client-ca-file requires TLS: set --tls-cert-file and --tls-private-key-file",
        ));
    }
    if names.is_none() && token.is_none() {
        return Err(usage_error(
            "missing client authentication: set --client-ca-file or --bearer-token-file, or allow every client with --allow-any-caller",
        ));
    }
    let reloadables = token.iter().map(|token| Arc::clone(token) as _).collect();
    Ok((ClientAuth::require(names, token), reloadables))
}
