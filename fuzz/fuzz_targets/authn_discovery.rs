//! Any bytes as a discovery document and as its key set.

#![no_main]

use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use navicert_authn::AuthnProfile;
use navicert_authn::config::{CompiledIssuer, load};
use navicert_authn::jwks::{ScriptedFetch, probe_issuer};

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";

fn issuer() -> &'static CompiledIssuer {
    static ISSUER: OnceLock<CompiledIssuer> = OnceLock::new();
    ISSUER.get_or_init(|| {
        let loaded = load(CONFIG.as_bytes(), &AuthnProfile::KUBE).expect("the configuration is valid");
        loaded.compiled.authenticators[0].issuer.clone()
    })
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let issuer = issuer();
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        let fetch = ScriptedFetch::default();
        fetch.answer("https://i/.well-known/openid-configuration", 200, &text);
        fetch.answer("https://i/keys", 200, &text);
        let mut future = pin!(probe_issuer(issuer, &fetch, &profile));
        // The scripted fetch never pends.
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(probe) => assert_eq!(probe.results.len(), 8),
            Poll::Pending => panic!("a scripted response is ready immediately"),
        }
    }
});
