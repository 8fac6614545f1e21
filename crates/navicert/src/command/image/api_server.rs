//! The API server, asked with navicert's own client: service accounts, pods and tokens for providers that want them
//! (I109–I116).

use std::fmt;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use navicert_client::kubeconfig::{Disk, Overrides, Sources, select};
use navicert_client::{exec, transport};
use navicert_image::service_account::{Pod, ServiceAccount, ServiceAccounts, Token, TokenRequest};
use navicert_types::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use transport::{Body, Transport};

use crate::args::image::{AccountArgs, Named};
use crate::command::connect::policy;
use crate::env::Environment;
use crate::output::{Failure, with_sources};

/// How long an answer may take.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);
/// A service account may carry 256 KiB of annotations, a pod not much more.
const LARGEST_ANSWER: usize = 4 << 20;

/// One API server, reached as a kubeconfig says.
pub(super) struct ApiServer {
    transport: Transport,
    runtime: Runtime,
}

impl ApiServer {
    /// Selects the context; nothing is contacted yet.
    pub(super) fn connect(args: &AccountArgs, environment: &Environment) -> Result<Self, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::bad_input(with_sources(error));
        let sources = Sources::locate(
            args.kubeconfig.as_deref(),
            environment.kubeconfig.as_deref(),
            environment.home.as_deref(),
        );
        let overrides =
            Overrides { context: args.context.clone().unwrap_or_default(), ..Overrides::default() };
        let selected = select(&sources, &overrides, &environment.current_dir, &Disk);
        let (_, effective) = selected.map_err(|error| {
            Failure::bad_input(format!(
                "no API server can be asked about service accounts: {}; `navicert kubeconfig check` says more",
                with_sources(&error)
            ))
        })?;
        let mut surroundings = exec::Surroundings::new(environment.inherited.clone());
        surroundings.policy = policy(None, environment);
        let variables = transport::Environment::read(|name| environment.variable(name)?.into_string().ok());
        let transport = transport::connect(&effective, &exec::Settings::default(), &surroundings, &variables)
            .map_err(|error| failed(&error))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        Ok(ApiServer { transport, runtime })
    }

    /// The pod, with the service account it runs as.
    pub(super) fn pod(&self, pod: &Named) -> Result<Pod, String> {
        let Named { namespace, name } = pod;
        let path = format!("/api/v1/namespaces/{}/pods/{}", segment(namespace)?, segment(name)?);
        let found = self.call(Method::GET, &path, None)?;
        Ok(Pod {
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
            let response = self.transport.send(request).await.map_err(|error| with_sources(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await;
            let body = body.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
            // Not what the parser says: that may quote a token.
            let answer: Option<Value> = serde_json::from_slice(&body).ok();
            if head.status.is_success() {
                return answer.ok_or_else(|| "the answer is not JSON".to_owned());
            }
            let message =
                answer.map(|status| text(&status, "/message")).filter(|message| !message.is_empty());
            Err(message.unwrap_or_else(|| format!("the API server answered {}", head.status)))
        };
        let limited = self.runtime.block_on(async { timeout(LONGEST_ANSWER, exchange).await });
        limited.unwrap_or_else(|_| Err(format!("no answer within {} s", LONGEST_ANSWER.as_secs())))
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

    fn token(&self, request: &TokenRequest) -> Result<Token, String> {
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
        let answer = self.call(Method::POST, &path, Some(&asked))?;
        let token = text(&answer, "/status/token");
        let expires = text(&answer, "/status/expirationTimestamp").parse::<Timestamp>();
        let expires = expires.map_err(|_| "the answer does not say when the token expires".to_owned())?;
        if token.is_empty() {
            return Err("the answer has no token".to_owned());
        }
        let lifetime = answer.pointer("/spec/expirationSeconds").and_then(Value::as_u64);
        let issued = lifetime.and_then(|lifetime| expires.checked_sub(Duration::from_secs(lifetime)).ok());
        Ok(Token { token: token.into(), issued: issued.unwrap_or_else(|| SystemClock.now()), expires })
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("transport", &self.transport).finish_non_exhaustive()
    }
}

fn bytes_of(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A name as part of a path. What is no name of an object must not change whose object is asked for.
fn segment(name: &str) -> Result<&str, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_name = !name.is_empty() && name.bytes().all(plain) && !name.starts_with('.');
    if is_name { Ok(name) } else { Err(format!("`{name}` is not the name of an object")) }
}
