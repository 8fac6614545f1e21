//! A gRPC service that answers with the authenticated user's name:
//! `cargo run -p navicert-tower --example tonic -- auth.yaml`. A call without a valid token gets `UNAUTHENTICATED`.

mod who_am_i;

use navicert_tower::AuthnLayer;
use tonic::transport::Server;
use who_am_i::WhoAmIServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("missing argument: the AuthenticationConfiguration")?;
    let authn = AuthnLayer::from_file(path)?;
    let address = "127.0.0.1:50051".parse()?;
    Ok(Server::builder().layer(authn).add_service(WhoAmIServer).serve(address).await?)
}
