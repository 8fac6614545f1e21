//! The token decisions recorded from kube-apiserver's own code, through the axum example over HTTP.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail by panicking"
)]

#[path = "../examples/axum.rs"]
#[expect(dead_code, reason = "the example has a main function")]
mod example;
#[expect(dead_code, reason = "this test uses a part")]
mod support;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use navicert_authn::jwks::{
    BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, FetchStage, well_known,
};
use navicert_authn::{AuthnProfile, batch, config};
use navicert_testkit::k8s::vectors::{self, Vector};
use navicert_tower::{AuthnLayer, BaseProfile};
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};
use support::{Server, assert_unauthorized, ready, write};

/// How many recorded tokens a request cannot carry as they are: they contain a line break, which no header can; or they are
/// empty or contain a space, and the token of a header is its second word, for kube-apiserver too. Spaces at the end are no part
/// of a header.
// S97
const TOKENS_WITH_LINE_BREAKS: usize = 5;
const TOKENS_WITH_SPACES: usize = 7;

/// The documents of a vector's issuers, by URL.
#[derive(Debug, Default)]
struct Documents(HashMap<String, String>);

impl Documents {
    fn new(config: &str, jwks: &Value) -> Self {
        let mut documents = Documents::default();
        let loaded = config::load(config.as_bytes(), &AuthnProfile::KUBE).unwrap();
        for one in loaded.compiled.authenticators {
            let issuer = one.issuer.url;
            let keys = format!("https://keys.test/{}", documents.0.len());
            let discovery = json!({"issuer": issuer, "jwks_uri": keys}).to_string();
            documents.0.insert(well_known(&issuer), discovery);
            documents.0.insert(keys, batch::key_set(jwks, &issuer).unwrap_or_else(|| "{}".to_owned()));
        }
        documents
    }
}

impl Fetch for Documents {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        let found = self.0.get(request.url).map(|body| FetchResponse::new(200, request.url, body.as_bytes()));
        let missing = || FetchError::new(FetchStage::Connect, format!("no document `{}`", request.url));
        Box::pin(std::future::ready(found.ok_or_else(missing)))
    }
}

/// The server's answer to a vector's token: its user; `None` for a 401.
async fn decide(dir: &Path, input: &Value, config: &str, jwks: &Value) -> Option<Value> {
    let authn = AuthnLayer::builder()
        .config(write(dir, config))
        .profile(BaseProfile::Kube)
        .clock(Arc::new(ManualClock::at(input["now"].as_i64().unwrap())))
        .fetch(Arc::new(Documents::new(config, jwks)))
        .build()
        .unwrap();
    ready(&authn).await;
    let server = Server::start(example::app(authn)).await;
    let reply = server.get_with_token(input["token"].as_str().unwrap()).await;
    if reply.status != 200 {
        assert_unauthorized(&reply, "a rejected token");
        return None;
    }
    Some(reply.json())
}

fn compare(vector: &Vector, user: Option<&Value>, is_carried: bool) -> Result<(), String> {
    let expected = match vector.expect["outcome"].as_str().unwrap() {
        "authenticated" if is_carried => Some(&vector.expect["user"]),
        "authenticated" | "rejected" | "no-opinion" => None,
        outcome => panic!("unknown outcome {outcome}"),
    };
    if user == expected { Ok(()) } else { Err(format!("{user:?} instead of {expected:?}")) }
}

// S288
#[test]
fn every_recorded_token_decision_agrees_over_http() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (configs, key_sets) = (vectors::json("authn-configs.json"), vectors::json("authn-jwks.json"));
    let dir = tempfile::tempdir().unwrap();
    let (mut with_line_breaks, mut with_spaces, mut users) = (0, 0, 0);
    vectors::run_suite("authn-token (tower, HTTP)", "authn-token.jsonl", |vector| {
        let named = |table: &Value, name: &str| table[vector.input[name].as_str().unwrap()].clone();
        let (config, jwks) = (named(&configs, "config_ref"), named(&key_sets, "jwks_ref"));
        let token = vector.input["token"].as_str().unwrap();
        if HeaderValue::try_from(format!("Bearer {token}")).is_err() {
            with_line_breaks += 1;
            return if token.contains('\n') { Ok(()) } else { Err("no line break".to_owned()) };
        }
        let is_carried = !token.is_empty() && !token.trim_end_matches(' ').contains(' ');
        with_spaces += usize::from(!is_carried);
        let user = runtime.block_on(decide(dir.path(), &vector.input, config.as_str().unwrap(), &jwks));
        users += usize::from(user.is_some());
        compare(vector, user.as_ref(), is_carried)
    });
    assert_eq!((with_line_breaks, with_spaces), (TOKENS_WITH_LINE_BREAKS, TOKENS_WITH_SPACES));
    // All that were recorded as valid, without the eight that a request cannot carry.
    assert_eq!(users, 420 - 8);
}
