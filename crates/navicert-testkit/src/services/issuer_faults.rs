//! Issuer faults, one after another, while a server that trusts the issuer is under load.

use std::time::Duration;

use navicert_types::{Clock as _, SystemClock};

use crate::cli::program::Running;
use crate::net::load::{Load, sleep_period};
use crate::net::{answer::Answer, gate::Gate};
use crate::pki::jws::{Algorithm, SigningKey};
use crate::services::issuer::Issuer;
use crate::wait;

/// Longer than the longest back-off between two fetches of a failing issuer's keys: a minute plus 20 % jitter.
const MAX_REFETCH_DELAY: Duration = Duration::from_secs(120);

/// A server and its issuer, for fault injection.
#[derive(Clone, Copy, Debug)]
pub struct IssuerFaults<'t> {
    /// The issuer. After the run it has one more signing key.
    pub issuer: &'t Issuer,
    /// Audience of its tokens.
    pub audience: &'t str,
    /// The server, whose log must report every fault.
    pub server: &'t Running,
}

impl IssuerFaults<'_> {
    /// Injects status 500, an invalid key set, a stalled response, refused connections and a key rotation, each for
    /// [`period`](crate::net::load::period). `ask` starts a load; `accepts` returns whether the server accepts a token.
    ///
    /// # Panics
    /// If a response is wrong or lost, or the log does not report a fault.
    pub async fn run(self, ask: impl Fn() -> Load, accepts: impl AsyncFn(&str) -> bool) {
        let (IssuerFaults { issuer, server, .. }, gate) = (self, Gate::new());
        let path = issuer.jwks_path().to_owned();
        load_during("a healthy issuer", &ask).await;

        issuer.answer(&path, Answer::status(500));
        self.trigger_refetch("one", &accepts).await;
        load_during("JWKS 500", &ask).await;
        server.wait_for_output_within("returned status 500, expected 200", MAX_REFETCH_DELAY).await;

        issuer.answer(&path, Answer::text("{\"keys\": 5}"));
        load_during("JWKS nonsense", &ask).await;
        server.wait_for_output_within("not a JSON Web Key Set", MAX_REFETCH_DELAY).await;

        issuer.answer(&path, Answer::json(&issuer.jwks()).after(&gate));
        load_during("a slow JWKS", &ask).await;
        gate.open();
        issuer.forget_answers();
        server.wait_for_output_within("jwks_refresh_recovered", MAX_REFETCH_DELAY).await;

        issuer.refuse_connections();
        self.trigger_refetch("two", &accepts).await;
        load_during("an issuer that is down", &ask).await;
        server.wait_for_output_within("Connection refused", MAX_REFETCH_DELAY).await;
        issuer.accept_connections();
        server.wait_for_repeated_output("jwks_refresh_recovered", 2, MAX_REFETCH_DELAY).await;

        // Tokens of the old key stay accepted, tokens of the new key are accepted once it is fetched.
        let key = SigningKey::generate(Algorithm::Es256, "rotated");
        issuer.add_key(key.clone());
        let token = self.token_of(&key);
        let load = ask();
        wait::within("the new key", async { while !accepts(&token).await {} }).await;
        sleep_period().await;
        assert!(accepts(&token).await, "a token of the new key");
        load.end("a rotating JWKS").await;
        server.wait_for_repeated_output("jwks_changed", 2, MAX_REFETCH_DELAY).await;
    }

    /// Presents a token signed with an unknown key, which makes the server refetch the key set until it succeeds.
    async fn trigger_refetch(self, kid: &str, accepts: &impl AsyncFn(&str) -> bool) {
        let token = self.token_of(&SigningKey::generate(Algorithm::Es256, kid));
        assert!(!accepts(&token).await, "a token of an unknown key");
    }

    fn token_of(self, key: &SigningKey) -> String {
        key.token(&self.issuer.claims("bob", self.audience, SystemClock.now()))
    }
}

async fn load_during(what: &str, ask: &impl Fn() -> Load) {
    let load = ask();
    sleep_period().await;
    load.end(what).await;
}
