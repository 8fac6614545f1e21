//! Probes an issuer once: every step from host name to keys with its outcome, for configuration checks.
// S305

use navicert_types::error_chain;

use super::discovery::{Discovered, DiscoveryError, discover};
use super::fetch::{Fetch, FetchError, FetchRequest, FetchStage};
use super::{KeySet, KeysUnavailable, StaticKeys};
use crate::config::CompiledIssuer;
use crate::jwt::JwsAlgorithm;
use crate::model::StepOutcome;
use crate::profile::AuthnProfile;

/// The steps of a probe, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// The host name resolves.
    Lookup,
    /// The host accepts a TCP connection.
    Connect,
    /// The TLS handshake succeeds with a certificate that the configuration trusts.
    Tls,
    /// The discovery document can be fetched and parsed.
    Discovery,
    /// The document belongs to this issuer.
    Issuer,
    /// The key set can be fetched and parsed.
    KeySet,
    /// At least one key can verify signatures.
    UsableKeys,
    /// The issuer signs with an accepted algorithm.
    Algorithms,
}

impl Probe {
    /// Every step, in order.
    pub const ALL: [Probe; 8] = [
        Probe::Lookup,
        Probe::Connect,
        Probe::Tls,
        Probe::Discovery,
        Probe::Issuer,
        Probe::KeySet,
        Probe::UsableKeys,
        Probe::Algorithms,
    ];

    /// What the step checks.
    pub fn title(self) -> &'static str {
        match self {
            Probe::Lookup => "the issuer's host name resolves",
            Probe::Connect => "the host accepts connections",
            Probe::Tls => "the server certificate is trusted",
            Probe::Discovery => "the discovery document is valid",
            Probe::Issuer => "the discovery document belongs to the issuer",
            Probe::KeySet => "the key set is valid",
            Probe::UsableKeys => "the key set has usable keys",
            Probe::Algorithms => "the issuer signs with an accepted algorithm",
        }
    }
}

/// One step and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The step.
    pub probe: Probe,
    /// Its outcome.
    pub verdict: StepOutcome,
    /// Additional information; may be empty.
    pub note: String,
}

/// The result of a probe.
#[derive(Debug)]
pub struct IssuerProbe {
    /// Every step.
    pub results: Vec<ProbeResult>,
    /// The keys, if they could be fetched.
    pub keys: Option<KeySet>,
    /// The URL of the key set, if the issuer was discovered.
    pub jwks_uri: Option<String>,
}

impl IssuerProbe {
    /// Whether every step passed.
    pub fn is_good(&self) -> bool {
        self.results.iter().all(|seen| seen.verdict == StepOutcome::Pass)
    }

    /// Whether the issuer could not be reached: the configuration may still be correct.
    pub fn is_unreachable(&self) -> bool {
        let failed = self.results.iter().find(|seen| matches!(seen.verdict, StepOutcome::Fail(_)));
        failed.is_some_and(|seen| seen.probe < Probe::Discovery)
    }

    /// The first failing step, and why it failed.
    pub fn failure(&self) -> Option<(Probe, &str)> {
        self.results.iter().find_map(|seen| match &seen.verdict {
            StepOutcome::Fail(why) => Some((seen.probe, why.as_str())),
            _ => None,
        })
    }

    /// The keys for an authenticator. As in a server, an issuer without a discovery document is not ready, and one without a
    /// key set has failed.
    pub fn into_keys(self) -> StaticKeys {
        let why = self.failure().map(|(_, why)| why.to_owned()).unwrap_or_default();
        match (self.keys, self.jwks_uri) {
            (Some(keys), Some(url)) => StaticKeys::new(keys).with_address(&url),
            (Some(keys), None) => StaticKeys::new(keys),
            (None, Some(_)) => StaticKeys::unavailable(KeysUnavailable::Failed(why)),
            (None, None) => StaticKeys::unavailable(KeysUnavailable::NotReady),
        }
    }
}

/// Probes an issuer: discovery, then keys. Nothing is cached and nothing is retried.
pub async fn probe_issuer(issuer: &CompiledIssuer, fetch: &dyn Fetch, profile: &AuthnProfile) -> IssuerProbe {
    let mut notes = Notes::default();
    let keys = steps(issuer, fetch, profile, &mut notes).await;
    let (keys, failure) = match keys {
        Ok(keys) => (Some(keys), None),
        Err((probe, why)) => (None, Some((probe, why))),
    };
    // Keys are returned even if none is usable or no algorithm is accepted.
    let failure = failure.or(notes.failure);
    let seen = Probe::ALL.map(|probe| {
        let verdict = match &failure {
            Some((failed, why)) if *failed == probe => StepOutcome::Fail(why.clone()),
            Some((failed, _)) if *failed < probe => StepOutcome::Skip,
            _ => StepOutcome::Pass,
        };
        let note = notes.texts.iter().find(|(about, _)| *about == probe).map(|(_, note)| note.clone());
        let note = note.filter(|_| verdict == StepOutcome::Pass).unwrap_or_default();
        ProbeResult { probe, verdict, note }
    });
    IssuerProbe { results: seen.to_vec(), keys, jwks_uri: notes.jwks_uri }
}

#[derive(Default)]
struct Notes {
    texts: Vec<(Probe, String)>,
    jwks_uri: Option<String>,
    /// A failure that leaves the keys as they are.
    failure: Option<(Probe, String)>,
}

async fn steps(
    issuer: &CompiledIssuer,
    fetch: &dyn Fetch,
    profile: &AuthnProfile,
    notes: &mut Notes,
) -> Result<KeySet, (Probe, String)> {
    let discovered = discover(issuer, fetch, profile).await.map_err(|error| {
        let probe = match &error {
            DiscoveryError::Fetch(error) => probe_of(error, Probe::Discovery),
            DiscoveryError::Issuer { .. } => Probe::Issuer,
            _ => Probe::Discovery,
        };
        (probe, error_chain(&error))
    })?;
    notes.texts.push((Probe::KeySet, discovered.jwks_uri.clone()));
    notes.jwks_uri = Some(discovered.jwks_uri.clone());
    let request = FetchRequest::for_issuer(issuer, &discovered.jwks_uri, profile);
    let answer = fetch.get(request).await.map_err(|error| (Probe::KeySet, error_chain(&error)))?;
    if answer.status != 200 {
        return Err((
            Probe::KeySet,
            format!("`{}` returned status {}, expected 200", answer.url, answer.status),
        ));
    }
    let keys = KeySet::parse(&answer.body, profile).map_err(|error| (Probe::KeySet, error.to_string()))?;
    let usable = keys.keys().iter().filter(|key| key.is_usable()).count();
    let other = keys.skipped() + keys.keys().len() - usable;
    let note = if other == 0 { format!("{usable}") } else { format!("{usable} usable, {other} unusable") };
    notes.texts.push((Probe::UsableKeys, note));
    notes.failure = if usable == 0 {
        Some((Probe::UsableKeys, "the key set has no usable key".to_owned()))
    } else {
        algorithms(&discovered, &mut notes.texts)
    };
    Ok(keys)
}

/// The listed algorithms have no effect on verification, but an issuer that lists only others will sign with those.
// S160
fn algorithms(discovered: &Discovered, notes: &mut Vec<(Probe, String)>) -> Option<(Probe, String)> {
    let common: Vec<&str> = discovered
        .algorithms
        .iter()
        .map(String::as_str)
        .filter(|name| JwsAlgorithm::from_name(name).is_some())
        .collect();
    let note = if discovered.algorithms.is_empty() { "not stated".to_owned() } else { common.join(", ") };
    notes.push((Probe::Algorithms, note));
    let is_foreign = common.is_empty() && !discovered.algorithms.is_empty();
    is_foreign.then(|| {
        let stated = discovered.algorithms.join(", ");
        (
            Probe::Algorithms,
            format!("the issuer signs with {stated} only; none of these algorithms is accepted"),
        )
    })
}

fn probe_of(error: &FetchError, otherwise: Probe) -> Probe {
    match error.stage {
        FetchStage::Lookup => Probe::Lookup,
        FetchStage::Connect | FetchStage::Proxy => Probe::Connect,
        FetchStage::Tls => Probe::Tls,
        FetchStage::Address | FetchStage::Http => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwks::scripted::{ScriptedFetch, issuer};

    const JWKS: &str = r#"{"keys": [{"kty": "oct", "k": "AA"}, {"kty": "RSA", "kid": "k", "e": "AQAB", "n": "sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1WlUzewbgBHod5pcM9H95GQRV3JDXboIRROSBigeC5yjU1hGzHHyXss8UDprecbAYxknTcQkhslANGRUZmdTOQ5qTRsLAt6BTYuyvVRdhS8exSZEy_c4gs_7svlJJQ4H9_NxsiIoLwAEk7-Q3UXERGYw_75IDrGA84-lA_-Ct4eTlXHBIY2EaV7t7LjJaynVJCpkv4LKjTTAumiGUIuQhrNhZLuF_RJLqHpM2kgWFLU7-VTdL1VbC2tejvcI2BlMkEpk1BzBZI0KQB0GaDWFLN-aEAw3vRw"}]}"#;

    async fn first_failure(fetch: &ScriptedFetch) -> Option<(Probe, usize)> {
        let report = probe_issuer(&issuer("https://i"), fetch, &AuthnProfile::HARDENED).await;
        let failed = report.results.iter().find(|seen| matches!(seen.verdict, StepOutcome::Fail(_)))?.probe;
        Some((failed, report.results.iter().filter(|seen| seen.verdict == StepOutcome::Skip).count()))
    }

    // S305
    #[tokio::test]
    async fn probe_reports_the_first_failing_step() {
        let fetch = ScriptedFetch::default();
        let discovery = well_known_document(r#"["RS256","EdDSA"]"#);
        let at = "https://i/.well-known/openid-configuration";
        for (stage, probe, skipped) in [
            (FetchStage::Lookup, Probe::Lookup, 7),
            (FetchStage::Connect, Probe::Connect, 6),
            (FetchStage::Tls, Probe::Tls, 5),
        ] {
            fetch.fail(at, stage);
            assert_eq!(first_failure(&fetch).await, Some((probe, skipped)));
        }
        fetch.answer(at, 404, "");
        assert_eq!(first_failure(&fetch).await, Some((Probe::Discovery, 4)));
        fetch.answer(at, 200, r#"{"issuer": "https://i/", "jwks_uri": "https://i/keys"}"#);
        assert_eq!(first_failure(&fetch).await, Some((Probe::Issuer, 3)));
        fetch.answer(at, 200, &discovery);
        fetch.fail("https://i/keys", FetchStage::Connect);
        assert_eq!(first_failure(&fetch).await, Some((Probe::KeySet, 2)));
        fetch.answer("https://i/keys", 200, r#"{"keys": []}"#);
        assert_eq!(first_failure(&fetch).await, Some((Probe::UsableKeys, 1)));
        fetch.answer("https://i/keys", 200, JWKS);
        assert_eq!(first_failure(&fetch).await, None);
        let seen = probe_issuer(&issuer("https://i"), &fetch, &AuthnProfile::HARDENED).await;
        assert!(seen.is_good() && !seen.is_unreachable());
        let notes: Vec<&str> = seen.results.iter().map(|seen| seen.note.as_str()).collect();
        assert_eq!(notes[5..], ["https://i/keys", "1 usable, 1 unusable", "RS256"]);
        fetch.answer(at, 200, &well_known_document(r#"["EdDSA"]"#));
        assert_eq!(first_failure(&fetch).await, Some((Probe::Algorithms, 0)));
    }

    fn well_known_document(algorithms: &str) -> String {
        format!(
            r#"{{"issuer": "https://i", "jwks_uri": "https://i/keys",
                "id_token_signing_alg_values_supported": {algorithms}}}"#
        )
    }
}
