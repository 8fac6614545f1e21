//! `--online`: probes every issuer, reports each step, and fetches keys and distributed claims.
// S305

use std::collections::BTreeMap;
use std::sync::Arc;

use navicert_authn::config::{CompiledConfig, Egress, NavicertConfiguration};
use navicert_authn::jwks::{IssuerProbe, JwksContext, KeySource, probe_issuer};
use navicert_authn::outcome::RefusalClass;
use navicert_authn::report::{IssuerReport, IssuerVerdict};
use navicert_authn::{AuthnOutcome, AuthnProfile, KubeVersion};
use navicert_client::transport::{Proxy, ProxyChoice, ProxyEnvironment};
use navicert_server::fetch::HttpFetch;
use navicert_types::redact::terminal;
use navicert_types::{FieldPath, SystemClock};

use super::fetch_once::FetchOnce;
use super::settings::AuthnSettings;
use crate::command::connect::block_on;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Failure;

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
        reports.push(IssuerReport::new(authenticator, probe.as_ref()));
    }
    Ok(reports)
}

/// The issuers of a configuration, as `--online` found them.
pub(super) struct OnlineIssuers {
    issuers: Vec<ProbedIssuer>,
    /// Fetches distributed claims.
    context: JwksContext,
}

struct ProbedIssuer {
    /// The field path of its authenticator.
    path: FieldPath,
    url: String,
    /// Its keys by the rules of the selected profile, and by kube-apiserver's.
    chosen: Arc<dyn KeySource>,
    /// By Kubernetes version.
    kube: BTreeMap<KubeVersion, Arc<dyn KeySource>>,
    /// The error of the first failing step, and its exit code.
    failure: Option<(String, Exit)>,
}

impl OnlineIssuers {
    /// Fetches the keys of every issuer, once for all profiles.
    pub(super) fn fetch(
        settings: &AuthnSettings,
        compiled: &CompiledConfig,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let fetch = Arc::new(FetchOnce::new(fetch(&settings.navicert_config, environment)?));
        let mut issuers = Vec::new();
        for authenticator in &compiled.authenticators {
            let issuer = &authenticator.issuer;
            if settings.has_key_file(&issuer.url) {
                continue;
            }
            let (probe, kube) = block_on(async {
                let probe = probe_issuer(issuer, &*fetch, &settings.profile).await;
                let mut kube = BTreeMap::<_, Arc<dyn KeySource>>::new();
                for version in KubeVersion::ALL {
                    let found = probe_issuer(issuer, &*fetch, &AuthnProfile::kube(version)).await;
                    kube.insert(version, Arc::new(found.into_keys()));
                }
                (probe, kube)
            })?;
            issuers.push(ProbedIssuer {
                path: authenticator.path.clone(),
                url: issuer.url.clone(),
                failure: probe.failure().map(|(_, why)| (why.to_owned(), exit_code(&probe))),
                chosen: Arc::new(probe.into_keys()),
                kube,
            });
        }
        let context = JwksContext {
            fetch,
            clock: Arc::new(SystemClock),
            random: Arc::new(|| 0.5),
            recorder: Arc::new(()),
        };
        Ok(OnlineIssuers { issuers, context })
    }

    /// The keys of an issuer under a profile.
    pub(super) fn keys(&self, issuer: &str, profile: &AuthnProfile) -> Option<Arc<dyn KeySource>> {
        let found = self.issuers.iter().find(|one| one.url == issuer)?;
        let kube = found.kube.get(&profile.version).filter(|_| profile.is_kube());
        Some(Arc::clone(kube.unwrap_or(&found.chosen)))
    }

    /// What fetching distributed claims needs.
    pub(super) fn context(&self) -> &JwksContext {
        &self.context
    }

    /// Why the token's issuer has no keys, if that decided the outcome, and the exit code.
    pub(super) fn failure(&self, outcome: &AuthnOutcome) -> Option<(String, Exit)> {
        let AuthnOutcome::Rejected(rejection) = outcome else { return None };
        if rejection.refusal.class() != RefusalClass::NotReady {
            return None;
        }
        let issuer = self.issuers.iter().find(|one| one.path == rejection.authenticator)?;
        let (why, exit) = issuer.failure.as_ref()?;
        Some((format!("failed to fetch the keys of issuer `{}`: {}", issuer.url, terminal(why)), *exit))
    }
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

/// 0 healthy, 4 unreachable, 1 any other failure.
fn exit_code(probe: &IssuerProbe) -> Exit {
    match IssuerVerdict::from(probe) {
        IssuerVerdict::Unreachable => Exit::Unreachable,
        IssuerVerdict::Healthy => Exit::Done,
        IssuerVerdict::Failed => Exit::No,
    }
}
