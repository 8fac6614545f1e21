//! `navicert serve proxy --print-rbac`: the role of the proxy's account, from the permissions that its self-check asks for.

use std::sync::Arc;

use navicert_authn::metrics::AuthnMetrics;
use navicert_server::proxy::rbac::{RoleSubject, cluster_role};
use navicert_server::proxy::required_permissions::{ImpersonationWay, RequiredPermissions};
use navicert_server::proxy::settings::IdentityMode;
use navicert_types::SystemClock;

use super::proxy::with_flags;
use super::shared::Configuration;
use crate::args::serve::ProxyArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Reads the configuration and prints the role and its binding. Needs neither a kubeconfig nor a certificate.
pub(super) fn run(args: &ProxyArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let configuration = Configuration::read(&args.shared.files, output)?;
    let settings = with_flags(configuration.files.servers.proxy.clone(), args);
    let metrics = Arc::new(AuthnMetrics::new("", Arc::new(SystemClock)));
    let reloader = configuration.mappings_only().open(metrics, environment)?;
    let authenticator = reloader.authenticator();
    let is_anonymous = authenticator.anonymous().is_some_and(|anonymous| anonymous.enabled);
    let required = RequiredPermissions::new(&settings, &authenticator.mapped_attributes(), is_anonymous);
    let way = match args.rbac.constrained {
        true => ImpersonationWay::Constrained,
        false => ImpersonationWay::Legacy,
    };
    let permissions = required.in_way(way);
    if permissions.is_empty() {
        output.text(match settings.mode {
            IdentityMode::RequestHeader(_) => {
                "# No role: a front proxy needs no permissions, but a certificate that the API server trusts.\n"
            }
            IdentityMode::Impersonation => "# No role: the configuration authenticates no user.\n",
        })?;
        return Ok(Exit::Done);
    }
    output.text(&cluster_role(&permissions, &RoleSubject::from_username(&args.rbac.rbac_subject)))?;
    Ok(Exit::Done)
}
