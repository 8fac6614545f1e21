//! One look at an issuer, now: every step from its name to its keys with a verdict, for whoever checks a
//! configuration (S305).

use super::discovery::{Discovered, DiscoveryError, discover};
use super::fetch::{Fetch, FetchError, FetchRequest, Stage};
use super::{FixedKeys, KeySet};
use crate::config::CompiledIssuer;
use crate::explain::Verdict;
use crate::jwt::Algorithm;
use crate::profile::Profile;

/// The steps of a look, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// The host's name has addresses.
    Lookup,
    /// Somebody listens there.
    Connect,
    /// TLS is agreed on, with a certificate that the configuration trusts.
    Tls,
    /// The discovery document can be had and read.
    Discovery,
    /// The document is this issuer's.
    Issuer,
    /// The key set can be had and read.
    KeySet,
    /// Some key can verify a signature.
    UsableKeys,
    /// The issuer signs with an algorithm that is accepted.
    Algorithms,
}

impl Probe {
    /// All of them, in order.
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

    /// What it asks.
    pub fn title(self) -> &'static str {
        match self {
            Probe::Lookup => "the issuer's host name has an address",
            Probe::Connect => "the host takes connections",
            Probe::Tls => "its certificate is trusted",
            Probe::Discovery => "the discovery document can be read",
            Probe::Issuer => "the document is this issuer's",
            Probe::KeySet => "the key set can be read",
            Probe::UsableKeys => "there are keys to verify with",
            Probe::Algorithms => "the issuer signs with an accepted algorithm",
        }
    }
}

/// One step and how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The step.
    pub probe: Probe,
    /// How it went.
    pub verdict: Verdict,
    /// What else there is to say; may be empty.
    pub note: String,
}

/// Everything that was seen.
#[derive(Debug)]
pub struct Look {
    /// Every step.
    pub seen: Vec<Seen>,
    /// The keys, if it came that far.
    pub keys: Option<KeySet>,
}

impl Look {
    /// Whether every step went well.
    pub fn is_good(&self) -> bool {
        self.seen.iter().all(|seen| seen.verdict == Verdict::Pass)
    }

    /// Whether it failed for want of an answer: the configuration may be right.
    pub fn is_unreachable(&self) -> bool {
        let failed = self.seen.iter().find(|seen| matches!(seen.verdict, Verdict::Fail(_)));
        failed.is_some_and(|seen| seen.probe < Probe::Discovery)
    }

    /// The keys for an authenticator, or why there are none.
    pub fn into_keys(self) -> FixedKeys {
        let failed = self.seen.into_iter().find_map(|seen| match seen.verdict {
            Verdict::Fail(why) => Some(why),
            _ => None,
        });
        match self.keys {
            Some(keys) => FixedKeys::new(keys),
            None => FixedKeys::unavailable(super::KeysUnavailable::Failed(failed.unwrap_or_default())),
        }
    }
}

/// Looks at an issuer: discovery, then keys. Nothing is kept and nothing is tried twice.
pub async fn look(issuer: &CompiledIssuer, fetch: &dyn Fetch, profile: &Profile) -> Look {
    let mut notes = Notes::default();
    let keys = steps(issuer, fetch, profile, &mut notes).await;
    let (keys, failure) = match keys {
        Ok(keys) => (Some(keys), None),
        Err((probe, why)) => (None, Some((probe, why))),
    };
    // Keys without a common algorithm are keys all the same.
    let failure = failure.or(notes.failure);
    let seen = Probe::ALL.map(|probe| {
        let verdict = match &failure {
            Some((failed, why)) if *failed == probe => Verdict::Fail(why.clone()),
            Some((failed, _)) if *failed < probe => Verdict::Skip,
            _ => Verdict::Pass,
        };
        let note = notes.texts.iter().find(|(about, _)| *about == probe).map(|(_, note)| note.clone());
        let note = note.filter(|_| verdict == Verdict::Pass).unwrap_or_default();
        Seen { probe, verdict, note }
    });
    Look { seen: seen.to_vec(), keys }
}

#[derive(Default)]
struct Notes {
    texts: Vec<(Probe, String)>,
    failure: Option<(Probe, String)>,
}

async fn steps(
    issuer: &CompiledIssuer,
    fetch: &dyn Fetch,
    profile: &Profile,
    notes: &mut Notes,
) -> Result<KeySet, (Probe, String)> {
    let discovered = discover(issuer, fetch, profile).await.map_err(|error| {
        let probe = match &error {
            DiscoveryError::Fetch(error) => probe_of(error, Probe::Discovery),
            DiscoveryError::Issuer { .. } => Probe::Issuer,
            _ => Probe::Discovery,
        };
        (probe, error.to_string())
    })?;
    notes.texts.push((Probe::KeySet, discovered.jwks_uri.clone()));
    let request = FetchRequest::to(issuer, &discovered.jwks_uri, profile);
    let answer = fetch.get(request).await.map_err(|error| (Probe::KeySet, error.chain()))?;
    if answer.status != 200 {
        return Err((Probe::KeySet, format!("{} answers {}, not 200", answer.url, answer.status)));
    }
    let keys = KeySet::parse(&answer.body, profile).map_err(|error| (Probe::KeySet, error.to_string()))?;
    let usable = keys.keys().iter().filter(|key| key.is_usable()).count();
    let other = keys.skipped() + keys.keys().len() - usable;
    let note = if other == 0 { format!("{usable}") } else { format!("{usable}, and {other} of no use here") };
    notes.texts.push((Probe::UsableKeys, note));
    if usable == 0 {
        return Err((Probe::UsableKeys, "the key set has no key that could verify a token".to_owned()));
    }
    notes.failure = algorithms(&discovered, &mut notes.texts);
    Ok(keys)
}

/// S160: what the issuer says has no effect, but an issuer that says it signs otherwise will.
fn algorithms(discovered: &Discovered, notes: &mut Vec<(Probe, String)>) -> Option<(Probe, String)> {
    let common: Vec<&str> = discovered
        .algorithms
        .iter()
        .map(String::as_str)
        .filter(|name| Algorithm::named(name).is_some())
        .collect();
    let note =
        if discovered.algorithms.is_empty() { "it does not say".to_owned() } else { common.join(", ") };
    notes.push((Probe::Algorithms, note));
    let is_foreign = common.is_empty() && !discovered.algorithms.is_empty();
    is_foreign.then(|| {
        let stated = discovered.algorithms.join(", ");
        (
            Probe::Algorithms,
            format!("the issuer says it signs with {stated} only, and none of them is accepted"),
        )
    })
}

fn probe_of(error: &FetchError, otherwise: Probe) -> Probe {
    match error.stage {
        Stage::Lookup => Probe::Lookup,
        Stage::Connect | Stage::Proxy => Probe::Connect,
        Stage::Tls => Probe::Tls,
        Stage::Address | Stage::Http => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwks::scripted::{ScriptedFetch, issuer};

    const JWKS: &str = r#"{"keys": [{"kty": "oct", "k": "AA"}, {"kty": "RSA", "kid": "k", "e": "AQAB", "n": "sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1WlUzewbgBHod5pcM9H95GQRV3JDXboIRROSBigeC5yjU1hGzHHyXss8UDprecbAYxknTcQkhslANGRUZmdTOQ5qTRsLAt6BTYuyvVRdhS8exSZEy_c4gs_7svlJJQ4H9_NxsiIoLwAEk7-Q3UXERGYw_75IDrGA84-lA_-Ct4eTlXHBIY2EaV7t7LjJaynVJCpkv4LKjTTAumiGUIuQhrNhZLuF_RJLqHpM2kgWFLU7-VTdL1VbC2tejvcI2BlMkEpk1BzBZI0KQB0GaDWFLN-aEAw3vRw"}]}"#;

    async fn first_failure(fetch: &ScriptedFetch) -> Option<(Probe, usize)> {
        let look = look(&issuer("https://i"), fetch, &Profile::HARDENED).await;
        let failed = look.seen.iter().find(|seen| matches!(seen.verdict, Verdict::Fail(_)))?.probe;
        Some((failed, look.seen.iter().filter(|seen| seen.verdict == Verdict::Skip).count()))
    }

    // S305
    #[tokio::test]
    async fn a_look_says_how_far_it_came() {
        let fetch = ScriptedFetch::default();
        let discovery = well_known_document(r#"["RS256","EdDSA"]"#);
        let at = "https://i/.well-known/openid-configuration";
        for (stage, probe, skipped) in [
            (Stage::Lookup, Probe::Lookup, 7),
            (Stage::Connect, Probe::Connect, 6),
            (Stage::Tls, Probe::Tls, 5),
        ] {
            fetch.fail(at, stage);
            assert_eq!(first_failure(&fetch).await, Some((probe, skipped)));
        }
        fetch.answer(at, 404, "");
        assert_eq!(first_failure(&fetch).await, Some((Probe::Discovery, 4)));
        fetch.answer(at, 200, r#"{"issuer": "https://i/", "jwks_uri": "https://i/keys"}"#);
        assert_eq!(first_failure(&fetch).await, Some((Probe::Issuer, 3)));
        fetch.answer(at, 200, &discovery);
        fetch.fail("https://i/keys", Stage::Connect);
        assert_eq!(first_failure(&fetch).await, Some((Probe::KeySet, 2)));
        fetch.answer("https://i/keys", 200, r#"{"keys": []}"#);
        assert_eq!(first_failure(&fetch).await, Some((Probe::UsableKeys, 1)));
        fetch.answer("https://i/keys", 200, JWKS);
        assert_eq!(first_failure(&fetch).await, None);
        let seen = look(&issuer("https://i"), &fetch, &Profile::HARDENED).await;
        assert!(seen.is_good() && !seen.is_unreachable());
        let notes: Vec<&str> = seen.seen.iter().map(|seen| seen.note.as_str()).collect();
        assert_eq!(notes[5..], ["https://i/keys", "1, and 1 of no use here", "RS256"]);
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
