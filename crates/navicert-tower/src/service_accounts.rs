//! The cluster as an issuer: its service account tokens are verified offline, with the keys that its API server publishes.

use std::sync::Arc;

use navicert_authn::AuthnProfile;
use navicert_authn::config::{ConfigOrigin, IssuerSettings};
use navicert_authn::jwks::{
    BoxFuture, Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse, FetchStage, well_known,
};
use navicert_authn::jwt::{JwsAlgorithm, JwsAlgorithmSet};
use navicert_client::transport::{Timer, TokioTimer, Transport};
use navicert_server::fetch::fetch_through;
use serde_json::{Value, json};
use thiserror::Error;

/// Where an API server publishes the discovery document of its service account issuer.
const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";
/// Where an API server publishes the keys of its service account issuer.
const KEYS_PATH: &str = "/openid/v1/jwks";
/// The algorithms that kube-apiserver signs service account tokens with.
const ALGORITHMS: [JwsAlgorithm; 4] =
    [JwsAlgorithm::RS256, JwsAlgorithm::ES256, JwsAlgorithm::ES384, JwsAlgorithm::ES512];

/// The service accounts of a cluster: tokens of the cluster's issuer, for audiences of yours.
///
/// The user is the one that the API server would authenticate: name `system:serviceaccount:<namespace>:<name>`, UID, both
/// groups and the token's identifier. Attributes about the pod and the node are not set.
///
/// Only the token is verified. That its service account or pod has been deleted since is known to the API server alone; the
/// token is accepted until it expires. Send it for review instead if that matters.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    transport: Transport,
    issuer: String,
    audiences: Vec<String>,
}

/// Why the cluster's issuer is unknown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceAccountsError {
    /// The API server cannot be reached.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The API server does not publish the document to this client.
    #[error(
        "failed to read `/.well-known/openid-configuration` of the API server: status {status}; the client needs the cluster role `system:service-account-issuer-discovery`"
    )]
    Status {
        /// The status.
        status: u16,
    },
    /// The document names no issuer.
    #[error("invalid discovery document of the API server: missing `issuer`")]
    Document,
}

impl ServiceAccounts {
    /// The cluster that `client` talks to, whose tokens have this issuer (`--service-account-issuer`). A token must be for one
    /// of the audiences. Choose other audiences than the API server's own: a service that accepts those can use
    /// the API server with the tokens it receives.
    pub fn new(
        client: impl Into<Transport>,
        issuer: impl Into<String>,
        audiences: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let audiences = audiences.into_iter().map(Into::into).collect();
        ServiceAccounts { transport: client.into(), issuer: issuer.into(), audiences }
    }

    /// The same with the issuer that the API server names.
    ///
    /// # Errors
    /// [`ServiceAccountsError`]: the API server cannot be reached, or does not say.
    pub async fn discover(
        client: impl Into<Transport>,
        audiences: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ServiceAccountsError> {
        let mut accounts = ServiceAccounts::new(client, String::new(), audiences);
        let request = FetchRequest {
            url: "https://kubernetes/.well-known/openid-configuration",
            redirect_base: None,
            bearer: None,
            roots: &[],
            egress: None,
            limits: FetchLimits::for_profile(&AuthnProfile::HARDENED),
        };
        let response = fetch_through(&accounts.transport, &TokioTimer, DISCOVERY_PATH, request).await?;
        if response.status != 200 {
            return Err(ServiceAccountsError::Status { status: response.status });
        }
        let document: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let issuer = document.get("issuer").and_then(Value::as_str);
        accounts.issuer = issuer.ok_or(ServiceAccountsError::Document)?.to_owned();
        Ok(accounts)
    }

    /// The issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The audiences.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The configuration that maps the cluster's tokens as kube-apiserver does.
    pub(crate) fn config_origin(&self) -> ConfigOrigin {
        let mut issuer = json!({"url": self.issuer, "audiences": self.audiences});
        if let (Some(members), true) = (issuer.as_object_mut(), self.audiences.len() > 1) {
            members.insert("audienceMatchPolicy".to_owned(), json!("MatchAny"));
        }
        let text = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": issuer,
                "claimValidationRules": [{
                    "expression": "claims.sub == 'system:serviceaccount:' + claims['kubernetes.io'].namespace + ':' + claims['kubernetes.io'].serviceaccount.name",
                    "message": "the subject is not the service account",
                }],
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": ""},
                    "uid": {"expression": "claims['kubernetes.io'].serviceaccount.uid"},
                    "groups": {
                        "expression": "['system:serviceaccounts', 'system:serviceaccounts:' + claims['kubernetes.io'].namespace]",
                    },
                },
            }],
        });
        let settings = IssuerSettings {
            url: self.issuer.clone(),
            allowed_algorithms: Some(JwsAlgorithmSet::from_iter(ALGORITHMS)),
            allow_system_prefix: true,
            ..IssuerSettings::default()
        };
        ConfigOrigin::Text { text: text.to_string(), issuers: vec![settings] }
    }

    /// What fetches the issuer's documents.
    pub(crate) fn fetch(&self, timer: Arc<dyn Timer>) -> ClusterFetch {
        let keys = format!("{}{KEYS_PATH}", self.issuer.trim_end_matches('/'));
        ClusterFetch { transport: self.transport.clone(), discovery: well_known(&self.issuer), keys, timer }
    }
}

/// Fetches the documents of the cluster's issuer from the API server, with the client's credentials. The issuer's URL need
/// not be reachable: often it is a name that only the cluster's DNS knows.
#[derive(Debug)]
pub(crate) struct ClusterFetch {
    transport: Transport,
    /// The URL that stands for the discovery document.
    discovery: String,
    /// The URL that stands for the keys, whatever address the discovery document names.
    keys: String,
    timer: Arc<dyn Timer>,
}

impl ClusterFetch {
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<FetchResponse, FetchError> {
        if request.url == self.keys {
            return fetch_through(&self.transport, &*self.timer, KEYS_PATH, request).await;
        }
        if request.url != self.discovery {
            let what = format!("`{}` is not a document of the cluster's issuer", request.url);
            return Err(FetchError::new(FetchStage::Address, what));
        }
        let mut response = fetch_through(&self.transport, &*self.timer, DISCOVERY_PATH, request).await?;
        if let Ok(Value::Object(mut document)) = serde_json::from_slice(&response.body) {
            document.insert("jwks_uri".to_owned(), json!(self.keys));
            response.body = Value::Object(document).to_string().into_bytes();
        }
        Ok(response)
    }
}

impl Fetch for ClusterFetch {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        Box::pin(self.fetch(request))
    }
}
