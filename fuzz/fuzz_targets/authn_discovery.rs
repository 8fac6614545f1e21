//! Any bytes as a discovery document, and as the key set that it leads to.

#![no_main]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use navicert_authn::Profile;
use navicert_authn::config::load;
use navicert_authn::jwks::{ScriptedFetch, look};

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for profile in [Profile::KUBE, Profile::HARDENED] {
        let Ok(loaded) = load(CONFIG.as_bytes(), &profile) else { return };
        let issuer = &loaded.compiled.authenticators[0].issuer;
        let fetch = ScriptedFetch::default();
        fetch.answer("https://i/.well-known/openid-configuration", 200, &text);
        fetch.answer("https://i/keys", 200, &text);
        let mut future = pin!(look(issuer, &fetch, &profile));
        // Nothing here waits for anything.
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(seen) => assert_eq!(seen.seen.len(), 8),
            Poll::Pending => panic!("a scripted answer is there at once"),
        }
    }
});
