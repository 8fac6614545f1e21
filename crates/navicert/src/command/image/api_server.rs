//! Reads service accounts and pods and requests tokens from the API server, for providers with `tokenAttributes`.
// I109–I116

use std::fmt;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use navicert_client::Client;
use navicert_client::transport::Body;
use navicert_image::service_account::{
    PodRef, ServiceAccount, ServiceAccountToken, ServiceAccounts, TokenRequest,
};
use navicert_types::{Clock as _, SystemClock, Timestamp, error_chain};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::args::image::{AccountArgs, NamespacedName};
use crate::command::connect;
use crate::env::Environment;
use crate::output::Failure;

/// Timeout of one request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// A service account may carry 256 KiB of annotations, a pod not much more.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Client of the API server that the kubeconfig selects.
pub(super) struct ApiServer {
    client: Client,
    runtime: Runtime,
}

impl ApiServer {
    /// Selects the context; does not connect yet.
    pub(super) fn connect(args: &AccountArgs, environment: &Environment) -> Result<Self, Failure> {
        let options = connect::located(args.kubeconfig.as_deref(), environment)
            .context(args.context.clone().unwrap_or_default())
            .kuberc_policy(None);
        let client = Client::new(options.resolve()?).map_err(|error| connect::build_failure(&error))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(ApiServer { client, runtime })
    }

    /// Reads a pod with its service account name.
    pub(super) fn pod(&self, pod: &NamespacedName) -> Result<PodRef, String> {
        let NamespacedName { namespace, name } = pod;
        let path = format!("/api/v1/namespaces/{}/pods/{}", segment(namespace)?, segment(name)?);
        let found = self.call(Method::GET, &path, None)?;
        Ok(PodRef {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: text(&found, "/metadata/uid"),
            service_account_name: text(&found, "/spec/serviceAccountName"),
        })
    }

    fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let request = Request::builder().method(method).uri(path).header("accept", "application/json");
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(bytes_of(body)))
                .map_err(|error| error.to_string())?,
            None => request.body(Body::empty()).map_err(|error| error.to_string())?,
        };
        let exchange = async {
            let response = self.client.send(request).await.map_err(|error| error_chain(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
            let body = body.map_err(|error| format!("failed to read the response: {error}"))?.to_bytes();
            // The parser's message may quote a token.
            let parsed: Option<Value> = serde_json::from_slice(&body).ok();
            if head.status.is_success() {
                return parsed.ok_or_else(|| "the response is not valid JSON".to_owned());
            }
            let message =
                parsed.map(|status| text(&status, "/message")).filter(|message| !message.is_empty());
            Err(message.unwrap_or_else(|| format!("API server responded with {}", head.status)))
        };
        let limited = self.runtime.block_on(async { timeout(RESPONSE_TIMEOUT, exchange).await });
        limited.unwrap_or_else(|_| Err(format!("no response within {} s", RESPONSE_TIMEOUT.as_secs())))
    }
}

impl ServiceAccounts for ApiServer {
    fn account(&self, namespace: &str, name: &str) -> Result<ServiceAccount, String> {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}", segment(namespace)?, segment(name)?);
        let found = self.call(Method::GET, &path, None)?;
        let annotations = found.pointer("/metadata/annotations").and_then(Value::as_object);
        let annotations = annotations.into_iter().flatten();
        let annotations =
            annotations.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
        Ok(ServiceAccount { uid: text(&found, "/metadata/uid"), annotations: annotations.collect() })
    }

    fn token(&self, request: &TokenRequest) -> Result<ServiceAccountToken, String> {
        let account = &request.account;
        let path = format!(
            "/api/v1/namespaces/{}/serviceaccounts/{}/token",
            segment(&account.namespace)?,
            segment(&account.name)?
        );
        let mut asked = json!({
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"uid": account.uid},
            "spec": {"audiences": [request.audience]},
        });
        let (name, uid) = &request.pod;
        if let (false, Some(spec)) = (name.is_empty(), asked.pointer_mut("/spec")) {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
            if let Some(members) = spec.as_object_mut() {
                members.insert("boundObjectRef".to_owned(), pod);
            }
        }
        let response = self.call(Method::POST, &path, Some(&asked))?;
        let token = text(&response, "/status/token");
        let expires = text(&response, "/status/expirationTimestamp").parse::<Timestamp>();
        let expires =
            expires.map_err(|_| "missing `status.expirationTimestamp` in the response".to_owned())?;
        if token.is_empty() {
            return Err("missing `status.token` in the response".to_owned());
        }
        let lifetime = response.pointer("/spec/expirationSeconds").and_then(Value::as_u64);
        let issued = lifetime.and_then(|lifetime| expires.checked_sub(Duration::from_secs(lifetime)).ok());
        Ok(ServiceAccountToken {
            token: token.into(),
            issued: issued.unwrap_or_else(|| SystemClock.now()),
            expires,
        })
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("client", &self.client).finish_non_exhaustive()
    }
}

fn bytes_of(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Validates an object name before it becomes a URL path segment, so that it cannot select another object.
fn segment(name: &str) -> Result<&str, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_name = !name.is_empty() && name.bytes().all(plain) && !name.starts_with('.');
    if is_name { Ok(name) } else { Err(format!("invalid object name `{name}`")) }
}
