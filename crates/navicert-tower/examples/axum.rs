//! An axum service that answers with the authenticated user: `cargo run -p navicert-tower --example axum -- auth.yaml`, then
//! `curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/user`.

use axum::{Extension, Json, Router, routing::get};
use navicert_tower::{AuthenticatedUser, AuthnLayer};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("missing argument: the AuthenticationConfiguration")?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    Ok(axum::serve(listener, app(AuthnLayer::from_file(path)?)).await?)
}

pub(crate) fn app(authn: AuthnLayer) -> Router {
    Router::new().route("/user", get(user)).layer(authn)
}

async fn user(Extension(user): Extension<AuthenticatedUser>) -> Json<Value> {
    let (username, uid, groups) = (user.username(), user.uid(), user.groups());
    Json(json!({"username": username, "uid": uid, "groups": groups, "extra": user.extra()}))
}
