//! The tonic example over loopback: a call with a valid token gets the user's name, every other one `UNAUTHENTICATED`.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

#[expect(dead_code, reason = "this test uses a part")]
mod support;
#[path = "../examples/tonic/who_am_i.rs"]
mod who_am_i;

use std::net::SocketAddr;

use http::uri::PathAndQuery;
use navicert_testkit::{Ca, Issuer};
use navicert_tower::AuthnLayer;
use serde_json::json;
use support::{config, ready, token, write};
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Status};
use who_am_i::{MessageCodec, WhoAmIServer};

async fn call(address: SocketAddr, token: Option<&str>) -> Result<String, Status> {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut request = Request::new(());
    if let Some(token) = token {
        let value: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/example.WhoAmI/Get");
    let codec = MessageCodec::<(), String>::default();
    client.unary(request, path, codec).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn call_is_answered_with_the_user_or_unauthenticated() {
    let ca = Ca::new("tonic");
    let (issuer, dir) = (Issuer::start(&ca), tempfile::tempdir().unwrap());
    let authn = AuthnLayer::from_file(write(dir.path(), &config(&issuer, &ca, "oidc:"))).unwrap();
    ready(&authn).await;
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = Server::builder().layer(authn).add_service(WhoAmIServer);
    let server = tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() });
    let ann = token(&issuer, "aud1", json!({}));
    assert_eq!(call(address, Some(&ann)).await.unwrap(), "oidc:ann");
    for token in [None, Some("opaque")] {
        assert_eq!(call(address, token).await.unwrap_err().code(), Code::Unauthenticated, "{token:?}");
    }
    server.abort();
}
