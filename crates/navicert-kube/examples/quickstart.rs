//! The program of docs/quickstart/rust.md: the name that the cluster gives this client.
//!
//! `cargo run -p navicert-kube --example quickstart`
#![expect(clippy::print_stdout, reason = "prints its result")]

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::PostParams;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // KUBECONFIG, ~/.kube/config or the pod's service account; plugins run as the kuberc permits.
    let client = navicert_kube::try_default()?;
    println!("authenticated as `{}`", user_name(client).await?);
    Ok(())
}

/// The name that the cluster gives this client.
pub(crate) async fn user_name(client: kube::Client) -> Result<String, kube::Error> {
    let review = Api::all(client).create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}
