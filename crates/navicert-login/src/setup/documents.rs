//! The files that `setup` prints: for the API server, for RBAC and for the kubeconfig.

use navicert_types::Secret;
use navicert_types::tree::edit::{EditStep, find};
use navicert_types::tree::{Node, Syntax, parse};
use serde_json::{Map, Value, json};

use super::SetupOptions;
use crate::request::{LoginRequest, TokenKind};

/// Claims that usually hold groups.
const GROUP_CLAIMS: [&str; 3] = ["groups", "roles", "cognito:groups"];
/// Prefix of users and groups.
const PREFIX: &str = "oidc:";

/// What to configure, as YAML: JSON text, which is YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupDocuments {
    /// `AuthenticationConfiguration` for the API server.
    pub authentication_configuration: String,
    /// `ClusterRoleBinding`s for the user and a group.
    pub rbac: Vec<String>,
    /// The user of the kubeconfig.
    pub kubeconfig_user: String,
    /// The same as a kubectl command.
    pub command: String,
}

impl SetupDocuments {
    pub(super) fn new(
        request: &LoginRequest,
        options: &SetupOptions,
        authorities: &str,
        claims: &Map<String, Value>,
    ) -> Self {
        let username = username_claim(claims);
        let groups = GROUP_CLAIMS.into_iter().find(|name| is_texts(claims.get(*name)));
        let user = claims.get(username).and_then(Value::as_str).unwrap_or_default();
        let group = groups.and_then(|name| claims.get(name)?.get(0)?.as_str());
        SetupDocuments {
            authentication_configuration: authentication(
                request,
                options,
                authorities,
                claims,
                (username, groups),
            ),
            rbac: [("User", Some(user)), ("Group", group)]
                .into_iter()
                .filter_map(|(kind, name)| Some(binding(kind, name?)))
                .collect(),
            kubeconfig_user: kubeconfig_user(request, options, options.printed_variables()),
            command: command(request, options),
        }
    }
}

/// `email` only if the provider has verified it: an API server rejects other tokens.
fn username_claim(claims: &Map<String, Value>) -> &'static str {
    let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
    if is_verified && claims.get("email").is_some_and(Value::is_string) { "email" } else { "sub" }
}

fn is_texts(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
}

fn authentication(
    request: &LoginRequest,
    options: &SetupOptions,
    authorities: &str,
    claims: &Map<String, Value>,
    (username, groups): (&str, Option<&str>),
) -> String {
    let audience = match request.base_token_kind() {
        TokenKind::Id => request.client_id.clone(),
        TokenKind::Access => match claims.get("aud") {
            Some(Value::String(audience)) => audience.clone(),
            Some(Value::Array(list)) => {
                list.first().and_then(Value::as_str).unwrap_or(&request.client_id).to_owned()
            }
            _ => request.client_id.clone(),
        },
    };
    let mut issuer = json!({"url": request.issuer, "audiences": [audience]});
    if let (false, Some(issuer)) = (authorities.is_empty(), issuer.as_object_mut()) {
        issuer.insert("certificateAuthority".to_owned(), json!(authorities));
    }
    let mut mappings = json!({"username": {"claim": username, "prefix": PREFIX}});
    if let (Some(groups), Some(mappings)) = (groups, mappings.as_object_mut()) {
        mappings.insert("groups".to_owned(), json!({"claim": groups, "prefix": PREFIX}));
    }
    let document = json!({
        "apiVersion": format!("apiserver.config.k8s.io/{}", options.authn_version.as_str()),
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": issuer, "claimMappings": mappings}],
    });
    yaml(&document)
}

fn binding(kind: &str, name: &str) -> String {
    let role = if kind == "User" { "view-user" } else { "view-group" };
    yaml(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("oidc-{role}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": format!("{PREFIX}{name}")}],
    }))
}

/// The user of the kubeconfig, which a file is changed with. It needs no login.
pub fn kubeconfig_entry(request: &LoginRequest, options: &SetupOptions) -> Node {
    let text = kubeconfig_user(request, options, options.variables.iter());
    let root = parse(text.as_bytes(), Syntax::Json).unwrap_or_default();
    let path = [EditStep::Key("users"), EditStep::Index(0), EditStep::Key("user")];
    find(&root, &path).cloned().unwrap_or_default()
}

fn kubeconfig_user<'v>(
    request: &LoginRequest,
    options: &SetupOptions,
    variables: impl Iterator<Item = &'v (String, Secret<String>)>,
) -> String {
    let mut exec = json!({
        "apiVersion": exec_version(options), "command": "navicert", "args": request.arguments(),
        "interactiveMode": "IfAvailable", "provideClusterInfo": true,
        "installHint": "navicert is needed to log in to this cluster",
    });
    let variables: Vec<Value> =
        variables.map(|(name, value)| json!({"name": name, "value": value.expose()})).collect();
    if let (false, Some(exec)) = (variables.is_empty(), exec.as_object_mut()) {
        exec.insert("env".to_owned(), Value::Array(variables));
    }
    yaml(&json!({"users": [{"name": options.user, "user": {"exec": exec}}]}))
}

fn exec_version(options: &SetupOptions) -> String {
    format!("client.authentication.k8s.io/{}", options.exec_version.as_str())
}

fn command(request: &LoginRequest, options: &SetupOptions) -> String {
    let mut words = vec![
        format!("kubectl config set-credentials {}", crate::request::shell_word(&options.user)),
        format!("--exec-api-version={}", exec_version(options)),
        "--exec-command=navicert".to_owned(),
        "--exec-interactive-mode=IfAvailable".to_owned(),
        "--exec-provide-cluster-info".to_owned(),
    ];
    words.extend(
        request.arguments().iter().map(|word| crate::request::shell_word(&format!("--exec-arg={word}"))),
    );
    words.extend(
        options.printed_variables().map(|(name, value)| {
            crate::request::shell_word(&format!("--exec-env={name}={}", value.expose()))
        }),
    );
    words.join(" ")
}

/// Indented JSON, which every reader of YAML accepts.
fn yaml(value: &Value) -> String {
    format!("{value:#}\n")
}
