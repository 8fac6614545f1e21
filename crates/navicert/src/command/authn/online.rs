//! Asking issuers themselves: one look at each, with a verdict per step (S305).

use std::collections::HashMap;
use std::sync::Arc;

use navicert_authn::Profile;
use navicert_authn::config::{Compiled, CompiledAuthenticator, Egress, NavicertConfiguration};
use navicert_authn::explain::Verdict;
use navicert_authn::jwks::{Keys, Look, look};
use navicert_client::transport::{Proxy, ProxyChoice, ProxyEnvironment};
use navicert_server::fetch::HttpFetch;
use navicert_types::redact::terminal;
use serde_json::{Value, json};

use super::settings::{KeySource, Settings};
use crate::command::connect::block_on;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Failure;

/// What was seen of one issuer.
pub(super) struct Sight {
    path: String,
    issuer: String,
    /// `None`: its keys are in a file.
    look: Option<Look>,
}

/// Looks at every issuer of a configuration.
pub(super) fn sights(
    settings: &Settings,
    compiled: &Compiled,
    environment: &Environment,
) -> Result<Vec<Sight>, Failure> {
    let fetch = fetch(&settings.side_car, environment)?;
    let mut sights = Vec::new();
    for authenticator in &compiled.authenticators {
        let issuer = &authenticator.issuer;
        let look = if settings.has_key_file(&issuer.url) {
            None
        } else {
            Some(block_on(look(issuer, &fetch, &settings.profile))?)
        };
        sights.push(Sight {
            path: authenticator.path.field("issuer").to_string(),
            issuer: issuer.url.clone(),
            look,
        });
    }
    Ok(sights)
}

/// The keys of every issuer, for the chosen profile and for kube-apiserver's word beside it.
pub(super) fn keys(
    settings: &Settings,
    compiled: &Compiled,
    environment: &Environment,
) -> Result<KeySource, Failure> {
    let fetch = fetch(&settings.side_car, environment)?;
    let known = |profile: &Profile| -> Result<HashMap<String, Arc<dyn Keys>>, Failure> {
        let mut known: HashMap<String, Arc<dyn Keys>> = HashMap::new();
        let asked = |one: &&CompiledAuthenticator| !settings.has_key_file(&one.issuer.url);
        for authenticator in compiled.authenticators.iter().filter(asked) {
            let seen = block_on(look(&authenticator.issuer, &fetch, profile))?;
            known.insert(authenticator.issuer.url.clone(), Arc::new(seen.into_keys()));
        }
        Ok(known)
    };
    Ok(KeySource::Online { chosen: known(&settings.profile)?, kube: known(&Profile::KUBE)? })
}

/// Gets documents: through the proxies that the environment names, and by the ways out that our own file names (S154).
pub(crate) fn fetch(
    side_car: &NavicertConfiguration,
    environment: &Environment,
) -> Result<HttpFetch, Failure> {
    let variable = |name: &str| environment.variable(name).and_then(|value| value.into_string().ok());
    let mut fetch = HttpFetch::new(ProxyEnvironment::read(variable));
    for egress in [Egress::ControlPlane, Egress::Cluster] {
        let way = side_car.egress.iter().find(|(known, _)| *known == egress);
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

impl Sight {
    /// 0: all is well; 4: nobody answers; 1: somebody does, but not as it should be.
    pub(super) fn exit(&self) -> Exit {
        match &self.look {
            Some(look) if look.is_unreachable() => Exit::Unreachable,
            Some(look) if !look.is_good() => Exit::No,
            _ => Exit::Done,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{} {}\n", self.path, self.issuer);
        let Some(look) = &self.look else { return text + "  SKIP  its keys are in a file\n" };
        for seen in &look.seen {
            let title = seen.probe.title();
            text += &match &seen.verdict {
                Verdict::Pass if seen.note.is_empty() => format!("  PASS  {title}\n"),
                Verdict::Pass => format!("  PASS  {title}: {}\n", terminal(&seen.note)),
                Verdict::Skip => format!("  SKIP  {title}\n"),
                Verdict::Fail(why) => format!("  FAIL  {title}\n        {}\n", terminal(why)),
            };
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let steps = self.look.as_ref().map(|look| {
            let step = |seen: &navicert_authn::jwks::Seen| {
                let (verdict, why) = match &seen.verdict {
                    Verdict::Pass => ("pass", None),
                    Verdict::Skip => ("skip", None),
                    Verdict::Fail(why) => ("fail", Some(why)),
                };
                json!({"step": seen.probe.title(), "verdict": verdict, "why": why, "note": seen.note})
            };
            look.seen.iter().map(step).collect::<Vec<_>>()
        });
        json!({"path": self.path, "issuer": self.issuer, "steps": steps})
    }
}
