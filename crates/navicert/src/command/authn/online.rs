//! `--online`: probes every issuer and reports each step.
// S305

use std::collections::HashMap;
use std::sync::Arc;

use navicert_authn::AuthnProfile;
use navicert_authn::config::{CompiledAuthenticator, CompiledConfig, Egress, NavicertConfiguration};
use navicert_authn::explain::StepOutcome;
use navicert_authn::jwks::{IssuerProbe, KeySource, probe_issuer};
use navicert_client::transport::{Proxy, ProxyChoice, ProxyEnvironment};
use navicert_server::fetch::HttpFetch;
use navicert_types::redact::terminal;
use serde_json::{Value, json};

use super::settings::{AuthnSettings, KeyOrigin};
use crate::command::connect::block_on;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Failure;

/// The probe of one issuer.
pub(super) struct IssuerReport {
    path: String,
    issuer: String,
    /// `None` if the issuer's keys are read from a file.
    probe: Option<IssuerProbe>,
}

/// Probes every issuer of a configuration.
pub(super) fn probe_issuers(
    settings: &AuthnSettings,
    compiled: &CompiledConfig,
    environment: &Environment,
) -> Result<Vec<IssuerReport>, Failure> {
    let fetch = fetch(&settings.navicert_config, environment)?;
    let mut reports = Vec::new();
    for authenticator in &compiled.authenticators {
        let issuer = &authenticator.issuer;
        let probe = if settings.has_key_file(&issuer.url) {
            None
        } else {
            Some(block_on(probe_issuer(issuer, &fetch, &settings.profile))?)
        };
        reports.push(IssuerReport {
            path: authenticator.path.field("issuer").to_string(),
            issuer: issuer.url.clone(),
            probe,
        });
    }
    Ok(reports)
}

/// Fetches the keys of every issuer, for the selected profile and for the comparison with kube-apiserver.
pub(super) fn fetch_keys(
    settings: &AuthnSettings,
    compiled: &CompiledConfig,
    environment: &Environment,
) -> Result<KeyOrigin, Failure> {
    let fetch = fetch(&settings.navicert_config, environment)?;
    let known = |profile: &AuthnProfile| -> Result<HashMap<String, Arc<dyn KeySource>>, Failure> {
        let mut known: HashMap<String, Arc<dyn KeySource>> = HashMap::new();
        let asked = |one: &&CompiledAuthenticator| !settings.has_key_file(&one.issuer.url);
        for authenticator in compiled.authenticators.iter().filter(asked) {
            let seen = block_on(probe_issuer(&authenticator.issuer, &fetch, profile))?;
            known.insert(authenticator.issuer.url.clone(), Arc::new(seen.into_keys()));
        }
        Ok(known)
    };
    Ok(KeyOrigin::Online { chosen: known(&settings.profile)?, kube: known(&AuthnProfile::KUBE)? })
}

/// The HTTP client for issuers, with the proxies of the environment and the egress settings of the NavicertConfiguration.
// S154
pub(crate) fn fetch(
    navicert_config: &NavicertConfiguration,
    environment: &Environment,
) -> Result<HttpFetch, Failure> {
    let variable = |name: &str| environment.variable(name).and_then(|value| value.into_string().ok());
    let mut fetch = HttpFetch::new(ProxyEnvironment::read(variable));
    for egress in [Egress::ControlPlane, Egress::Cluster] {
        let way = navicert_config.egress.iter().find(|(known, _)| *known == egress);
        let choice = match way.map(|(_, way)| way.as_str()) {
            None | Some("direct") => ProxyChoice::None,
            Some(address) => {
                let proxy = Proxy::parse(address);
                let name = egress.name();
                ProxyChoice::Always(
                    proxy.map_err(|error| Failure::bad_input(format!("egress.{name}: {error}")))?,
                )
            }
        };
        fetch = fetch.with_egress(egress, choice);
    }
    Ok(fetch)
}

impl IssuerReport {
    /// Exit codes: 0 healthy, 4 unreachable, 1 any other failure.
    pub(super) fn exit(&self) -> Exit {
        match &self.probe {
            Some(probe) if probe.is_unreachable() => Exit::Unreachable,
            Some(probe) if !probe.is_good() => Exit::No,
            _ => Exit::Done,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{} {}\n", self.path, self.issuer);
        let Some(probe) = &self.probe else { return text + "  SKIP  keys are read from a file\n" };
        for seen in &probe.results {
            let title = seen.probe.title();
            text += &match &seen.verdict {
                StepOutcome::Pass if seen.note.is_empty() => format!("  PASS  {title}\n"),
                StepOutcome::Pass => format!("  PASS  {title}: {}\n", terminal(&seen.note)),
                StepOutcome::Skip => format!("  SKIP  {title}\n"),
                StepOutcome::Fail(why) => format!("  FAIL  {title}\n        {}\n", terminal(why)),
            };
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let steps = self.probe.as_ref().map(|probe| {
            let step = |seen: &navicert_authn::jwks::ProbeResult| {
                let (verdict, why) = match &seen.verdict {
                    StepOutcome::Pass => ("pass", None),
                    StepOutcome::Skip => ("skip", None),
                    StepOutcome::Fail(why) => ("fail", Some(why)),
                };
                json!({"step": seen.probe.title(), "verdict": verdict, "why": why, "note": seen.note})
            };
            probe.results.iter().map(step).collect::<Vec<_>>()
        });
        json!({"path": self.path, "issuer": self.issuer, "steps": steps})
    }
}
