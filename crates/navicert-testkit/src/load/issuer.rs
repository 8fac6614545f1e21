//! Everything that can be wrong with an issuer, one after another, while a server that knows it is asked all the time.

use std::time::Duration;

use navicert_types::{Clock as _, SystemClock};

use super::{Load, lasting};
use crate::program::Running;
use crate::{Algorithm, Answer, Gate, Issuer, SigningKey, wait};

/// Longer than the longest pause between two tries of a server whose issuer is in trouble: a minute, and a fifth more.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server whose issuer gets into trouble.
#[derive(Clone, Copy, Debug)]
pub struct Trouble<'t> {
    /// The issuer. When it is over, its tokens may be signed with one more key.
    pub issuer: &'t Issuer,
    /// For whom its tokens are.
    pub audience: &'t str,
    /// The server, whose log has to say what happened.
    pub server: &'t Running,
}

impl Trouble<'_> {
    /// Answers of 500, nonsense and none at all, no connection, and new keys, each for [`super::period`]. `ask` starts a load;
    /// `accepts` says whether the server accepts a token.
    ///
    /// # Panics
    /// If an answer was wrong or lost, or the log does not say what happened.
    pub async fn befall(self, ask: impl Fn() -> Load, accepts: impl AsyncFn(&str) -> bool) {
        let (Trouble { issuer, server, .. }, gate) = (self, Gate::new());
        let path = issuer.jwks_path().to_owned();
        under("a healthy issuer", &ask).await;

        issuer.answer(&path, Answer::status(500));
        self.make_it_ask("one", &accepts).await;
        under("JWKS 500", &ask).await;
        server.wait_for_output_within("the answer is 500, not 200", PATIENCE).await;

        issuer.answer(&path, Answer::text("{\"keys\": 5}"));
        under("JWKS nonsense", &ask).await;
        server.wait_for_output_within("not a JSON Web Key Set", PATIENCE).await;

        issuer.answer(&path, Answer::json(&issuer.jwks()).after(&gate));
        under("a slow JWKS", &ask).await;
        gate.open();
        issuer.forget_answers();
        server.wait_for_output_within("an issuer is well again", PATIENCE).await;

        issuer.refuse_connections();
        self.make_it_ask("two", &accepts).await;
        under("an issuer that is down", &ask).await;
        server.wait_for_output_within("Connection refused", PATIENCE).await;
        issuer.accept_connections();
        server.wait_for_repeated_output("an issuer is well again", 2, PATIENCE).await;

        // Tokens of the old key all the time, and of the new one from the moment it is known.
        let key = SigningKey::generate(Algorithm::Es256, "rotated");
        issuer.add_key(key.clone());
        let token = self.token_of(&key);
        let load = ask();
        wait::within("the new key", async { while !accepts(&token).await {} }).await;
        lasting().await;
        assert!(accepts(&token).await, "a token of the new key");
        load.end("a rotating JWKS").await;
        server.wait_for_repeated_output("an issuer's keys have changed", 2, PATIENCE).await;
    }

    /// A token of a key that nobody has: the issuer is asked at once, and from then on until it is well again.
    async fn make_it_ask(self, kid: &str, accepts: &impl AsyncFn(&str) -> bool) {
        let token = self.token_of(&SigningKey::generate(Algorithm::Es256, kid));
        assert!(!accepts(&token).await, "a token of nobody's key");
    }

    fn token_of(self, key: &SigningKey) -> String {
        key.token(&self.issuer.claims("bob", self.audience, SystemClock.now()))
    }
}

async fn under(what: &str, ask: &impl Fn() -> Load) {
    let load = ask();
    lasting().await;
    load.end(what).await;
}
