//! The API server's own answers; recording and faults are the HTTP server's and tested there.

use http::Request;
use rustls::CertificateError;

use super::*;
use crate::net::http_client::HttpClient;

async fn status_with(client: &HttpClient, url: &str, authorization: &str) -> u16 {
    let request = Request::get(url).header("authorization", authorization).body(bytes::Bytes::new()).unwrap();
    client.send(request).await.unwrap().status.as_u16()
}

#[tokio::test]
async fn tokens_come_in_while_accepted_and_get_a_401_otherwise() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let client = HttpClient::trusting(&ca);
    let url = api.url_of("/api/v1/pods");
    assert_eq!(status_with(&client, &url, "Bearer one").await, 401);
    api.accept_token("one", "ann", &["developers"]);
    assert!(format!("{api:?}").contains("ann") && !format!("{api:?}").contains("\"one\""));
    assert_eq!(status_with(&client, &url, "Bearer one").await, 200);
    for wrong in ["Bearer two", "Bearer ", "Basic one", "one"] {
        assert_eq!(status_with(&client, &url, wrong).await, 401, "{wrong}");
    }
    api.revoke_token("one");
    assert_eq!(status_with(&client, &url, "Bearer one").await, 401);
    let tokens: Vec<_> =
        api.requests().iter().map(|request| request.bearer_token().map(str::to_owned)).collect();
    assert_eq!(tokens[..2], [Some("one".to_owned()), Some("one".to_owned())]);
}

#[tokio::test]
async fn a_refusal_is_a_kubernetes_status() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let client = HttpClient::trusting(&ca);
    let body = client.get(&api.url_of("/api")).await.unwrap().json();
    assert_eq!(
        (&body["kind"], &body["code"], &body["reason"]),
        (&json!("Status"), &json!(401), &json!("Unauthorized"))
    );
    api.answer("/api", Answer::failure(403, "Forbidden", "no"));
    assert_eq!(client.get(&api.url_of("/api")).await.unwrap().status, 403);
}

#[tokio::test]
async fn a_wrong_token_is_refused_beside_a_good_certificate_and_both_are_recorded() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let ann = ca.client("ann").organization("developers").issue();
    let client = HttpClient::with_identity(&ca, &ann);
    assert_eq!(status_with(&client, &api.url_of("/api"), "Bearer wrong").await, 401);
    let request = &api.requests()[0];
    let certificate = request.client.as_ref().unwrap();
    assert_eq!((request.bearer_token(), certificate.common_name.as_str()), (Some("wrong"), "ann"));
    assert_eq!(certificate.chain[0], ann.leaf().to_vec());
}

#[tokio::test]
async fn everyone_may_be_let_in_as_anonymous() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_everyone();
    let client = HttpClient::trusting(&ca);
    let review = client.post_json(&api.url_of(ApiServer::WHO_AM_I), &json!({})).await.unwrap().json();
    assert_eq!(review["status"]["userInfo"]["username"], "system:anonymous");
    assert!(client.get(&api.url_of("/version")).await.unwrap().json()["gitVersion"].is_string());
}

#[tokio::test]
async fn a_client_certificate_is_refused_with_its_alert_on_cue() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let client = HttpClient::with_identity(&ca, &ca.client("ann").issue());
    api.refuse_client_certificates(Some(CertificateError::Expired));
    let error = client.get(&api.url_of("/api")).await.unwrap_err();
    let text = navicert_types::error_chain(&*error);
    assert!(text.contains("CertificateExpired"), "{text}");
    api.refuse_client_certificates(None);
    assert_eq!(client.get(&api.url_of("/api")).await.unwrap().status, 200);
}
