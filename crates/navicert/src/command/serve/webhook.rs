//! `navicert serve webhook`.

use std::sync::Arc;

use navicert_server::Limits;
use navicert_server::callers::{Callers, TokenFile};
use navicert_server::files::Follows;
use navicert_server::webhook::Webhook;

use super::shared::Shared;
use super::{bad, check, print_kubeconfig, usage};
use crate::args::serve::{CallerArgs, WebhookArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Opens, checks, serves.
pub(super) fn run(
    args: &WebhookArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let shared = Shared::open(&args.shared, Some(&args.callers), environment, output)?;
    let (handler, followers) = build(args, &shared)?;
    if args.kubeconfig.print_kubeconfig {
        return print_kubeconfig::run(&args.kubeconfig, &shared, output);
    }
    if args.shared.check {
        return check::passed(&shared.reloader, output);
    }
    shared.serve(("webhook", Limits::default()), &args.shared, handler, followers, output)
}

type Built = (Arc<Webhook>, Vec<Arc<dyn Follows>>);

fn build(args: &WebhookArgs, shared: &Shared) -> Result<Built, Failure> {
    let (callers, followers) = callers(&args.callers, shared)?;
    let mut settings = shared.servers.webhook.clone();
    if !args.api_audiences.is_empty() {
        settings.server_audiences.clone_from(&args.api_audiences);
    }
    let handler = Webhook::new(
        Arc::clone(shared.reloader.live()),
        callers,
        settings,
        shared.audit.clone(),
        Arc::clone(&shared.clock),
    );
    Ok((Arc::new(handler), followers))
}

/// Who may ask has to be said: the endpoint would serve a thief as well (S223).
fn callers(args: &CallerArgs, shared: &Shared) -> Result<(Callers, Vec<Arc<dyn Follows>>), Failure> {
    let servers = &shared.servers;
    if args.allow_any_caller {
        return Ok((Callers::anybody(), Vec::new()));
    }
    let token = servers.bearer_token_file.as_deref().map(TokenFile::open).transpose();
    let token = token.map_err(|error| bad(&error))?;
    let names = servers.client_ca_file.as_ref().map(|_| servers.client_allowed_names.clone());
    if names.is_some() && shared.tls.is_none() {
        return Err(usage("--client-ca-file needs TLS: without it nobody shows a certificate"));
    }
    if names.is_none() && token.is_none() {
        return Err(usage(
            "who may ask is not said: name --client-ca-file or --bearer-token-file, or let anybody ask with --allow-any-caller",
        ));
    }
    let followers = token.iter().map(|token| Arc::clone(token) as _).collect();
    Ok((Callers::known(names, token), followers))
}
