//! Tests of the issuer over TLS.

use super::*;
use crate::net::answer::Cut;
use crate::net::gate::Gate;
use crate::net::http_client::HttpClient;
use crate::wait;

fn started() -> (Ca, Issuer, HttpClient) {
    let ca = Ca::new("root");
    let issuer = Issuer::start(&ca);
    let client = HttpClient::trusting(&ca);
    (ca, issuer, client)
}

fn ids(keys: &Value) -> Vec<&str> {
    keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn discovery_leads_to_the_keys_under_any_path_and_protocol() {
    let ca = Ca::new("root");
    for path in ["", "/realms/one", "/tenant/"] {
        let builder = if path.is_empty() { Issuer::builder() } else { Issuer::builder().path(path) };
        let issuer = builder.start(&ca);
        for client in [HttpClient::trusting(&ca), HttpClient::trusting(&ca).http2()] {
            // S156: the issuer without one trailing slash, then the well-known path.
            let url = issuer.issuer_url();
            let url = format!("{}/.well-known/openid-configuration", url.strip_suffix('/').unwrap_or(&url));
            let document = client.get(&url).await.unwrap().json();
            assert_eq!(document["issuer"], issuer.issuer_url());
            let keys = client.get(document["jwks_uri"].as_str().unwrap()).await.unwrap().json();
            assert_eq!(keys, issuer.jwks());
            assert_eq!(ids(&keys), ["key-1"]);
        }
        assert_eq!((issuer.count(issuer.discovery_path()), issuer.count(issuer.jwks_path())), (2, 2));
    }
}

#[tokio::test]
async fn rotation_adds_removes_and_replaces_keys_on_cue() {
    let (_ca, issuer, client) = started();
    let jwks = async || client.get(&issuer.jwks_url()).await.unwrap().json();
    issuer.add_key(SigningKey::generate(Algorithm::Es384, "key-2"));
    assert_eq!(ids(&jwks().await), ["key-1", "key-2"]);
    assert_eq!(issuer.key().id(), "key-2", "the newest key signs");
    issuer.remove_key("key-1");
    assert_eq!(ids(&jwks().await), ["key-2"]);
    let twin = SigningKey::generate(Algorithm::Es256, "same");
    issuer.replace_keys([twin.clone(), SigningKey::generate(Algorithm::Es512, "same")]);
    assert_eq!(ids(&jwks().await), ["same", "same"]);
    assert_eq!(issuer.count(issuer.jwks_path()), 3);
}

#[tokio::test]
async fn headers_for_caches_come_with_the_keys_on_cue() {
    let (_ca, issuer, client) = started();
    issuer.set_jwks_headers(&[("cache-control", "max-age=3600"), ("content-type", "text/html")]);
    let reply = client.get(&issuer.jwks_url()).await.unwrap();
    assert_eq!(
        (reply.header("cache-control"), reply.header("content-type")),
        (Some("max-age=3600"), Some("text/html"))
    );
    assert_eq!(reply.headers.get_all("content-type").iter().count(), 1);
    issuer.set_jwks_headers(&[]);
    assert_eq!(client.get(&issuer.jwks_url()).await.unwrap().header("cache-control"), None);
    issuer.set_discovery_headers(&[("etag", "\"1\"")]);
    assert_eq!(client.get(&issuer.discovery_url()).await.unwrap().header("etag"), Some("\"1\""));
}

#[tokio::test]
async fn discovery_lies_on_cue() {
    let (_ca, issuer, client) = started();
    issuer.set_discovery("issuer", json!(issuer.issuer_url() + "/"));
    issuer.remove_discovery("jwks_uri");
    let document = client.get(&issuer.discovery_url()).await.unwrap().json();
    assert_eq!(document["issuer"], issuer.issuer_url() + "/");
    assert!(document.get("jwks_uri").is_none());
    assert!(document.get("token_endpoint").is_some());
}

#[tokio::test]
async fn an_outage_refuses_or_resets_and_ends_on_the_same_port() {
    let (_ca, issuer, client) = started();
    client.get(&issuer.jwks_url()).await.unwrap();
    issuer.refuse_connections();
    let error = client.get(&issuer.jwks_url()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::ConnectionRefused);
    issuer.accept_connections();
    client.get(&issuer.jwks_url()).await.unwrap();
    issuer.reset_connections();
    let error = client.get(&issuer.jwks_url()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::ConnectionReset);
    issuer.accept_connections();
    client.get(&issuer.jwks_url()).await.unwrap();
    assert_eq!(issuer.count(issuer.jwks_path()), 3);
}

#[tokio::test]
async fn an_outage_may_begin_with_the_answer() {
    let (_ca, issuer, client) = started();
    issuer.answer_once(issuer.jwks_path(), Answer::status(500));
    issuer.answer_once(issuer.jwks_path(), Answer::cut(Cut::Reset));
    issuer.answer_once(issuer.jwks_path(), Answer::cut(Cut::Clip));
    assert_eq!(client.get(&issuer.jwks_url()).await.unwrap().status, 500);
    assert!(client.get(&issuer.jwks_url()).await.is_err());
    assert!(client.get(&issuer.jwks_url()).await.is_err());
    assert_eq!(client.get(&issuer.jwks_url()).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_stalled_connection_says_nothing_not_even_tls_until_the_gate_opens() {
    let (_ca, issuer, client) = started();
    let gate = Gate::new();
    issuer.stall_connections(&gate);
    let url = issuer.jwks_url();
    let request = tokio::spawn(async move { client.get(&url).await.unwrap().status });
    gate.wait_for_arrivals(1).await;
    assert!(issuer.connections()[0].tls.is_none() && !request.is_finished());
    gate.open();
    assert_eq!(wait::within("the answer", request).await.unwrap(), 200);
}

#[tokio::test]
async fn redirects_lead_to_the_same_or_another_origin_and_bad_json_is_served_as_json() {
    let (ca, issuer, client) = started();
    let other = Issuer::start(&ca);
    for target in [issuer.url_of("/moved"), other.jwks_url()] {
        issuer.answer(issuer.jwks_path(), Answer::redirect(307, &target));
        let reply = client.get(&issuer.jwks_url()).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.header("location")), (307, Some(target.as_str())));
    }
    assert!(other.requests().is_empty(), "the test client follows nothing");
    issuer.answer(issuer.discovery_path(), Answer::bytes("application/json", &b"{\"issuer\":"[..]));
    let reply = client.get(&issuer.discovery_url()).await.unwrap();
    assert!(serde_json::from_slice::<Value>(&reply.body).is_err());
}

#[tokio::test]
async fn hostile_key_sets_are_published_as_they_are() {
    let (_ca, issuer, client) = started();
    for odd in hostile::odd_keys() {
        issuer.add_odd_key(odd.jwk);
    }
    let keys = client.get(&issuer.jwks_url()).await.unwrap().json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1 + hostile::odd_keys().len());
    issuer.remove_odd_keys();
    issuer.answer(issuer.jwks_path(), Answer::json(&hostile::many_keys(&issuer.key(), 10_000)));
    let many = client.get(&issuer.jwks_url()).await.unwrap().json();
    assert_eq!(ids(&many).len(), 10_000);
    assert_eq!(ids(&many)[9_999], "key-9999");
}

#[tokio::test]
async fn tokens_name_their_issuer_and_claims_last_five_minutes() {
    let (_ca, issuer, _client) = started();
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let claims = issuer.claims("ann", "kubernetes", now);
    assert_eq!((claims["exp"].as_i64(), &claims["iss"]), (Some(1_700_000_300), &json!(issuer.issuer_url())));
    assert_eq!(issuer.with_issuer(&json!({"sub": "a"}))["iss"], issuer.issuer_url());
    assert_eq!(issuer.with_issuer(&json!({"iss": "other"}))["iss"], "other");
    assert_eq!(issuer.with_issuer(&json!(["no object"])), json!(["no object"]));
    assert_eq!(issuer.token(&claims).split('.').count(), 3);
}
