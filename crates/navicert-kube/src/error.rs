//! Errors of building a client, and of the authentication layer.

use navicert_client::ConfigErrors;
use navicert_client::credential::CredentialError;
use navicert_client::transport::BuildError;
use thiserror::Error;

/// Why there is no client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The configuration has problems.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A file changed after it was checked.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Why [`AuthLayer`](crate::AuthLayer) did not send a request. A `kube::Client` returns it inside of
/// `kube::Error::Service`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuthLayerError {
    /// The credential source failed.
    #[error("getting credentials")]
    Credentials(#[source] CredentialError),
    /// The credential has a client certificate, which belongs to the connection: a layer sees only requests.
    #[error(
        "the credential has a client certificate, which a layer cannot present; build the client with `navicert_kube::ClientBuilder`"
    )]
    ClientCertificate,
}
