//! Decodes the tree into types: lenient about unknown fields, strict about types, base64 and duplicate names.

use std::collections::HashSet;

use super::{
    AuthInfo, AuthProviderConfig, Cluster, Context, ExecConfig, ExecEnvVar, InteractiveMode, Kubeconfig,
    NamedAuthInfo, NamedCluster, NamedContext, NamedExtension, Preferences,
};
use crate::decode::{Base64, Decode, DecodeMode, Decoder, Fields};
use crate::diagnostic::{DiagnosticKind, Diagnostics};
use crate::tree::{self, Node, Syntax};
use crate::versioned::{Kind, Versions};

/// Both names may be absent, and nothing else is a kubeconfig.
// C102
static CONFIG: Versions<Kubeconfig> = Versions {
    syntax: Syntax::Yaml,
    mode: DecodeMode::Lenient,
    default_api_version: Some("v1"),
    default_kind: Some("Config"),
    kinds: &[Kind { api_version: "v1", kind: "Config", decode: Kubeconfig::decode }],
};

pub(super) fn config(bytes: &[u8]) -> Result<Kubeconfig, Diagnostics> {
    CONFIG.decode(bytes).map_err(|diagnostics| {
        // A syntax error may point at a secret.
        let marked = diagnostics.into_iter().map(|mut diagnostic| {
            diagnostic.is_secret |= diagnostic.kind == DiagnosticKind::Syntax;
            diagnostic
        });
        marked.collect()
    })
}

/// Decodes and ignores the errors of fields.
pub(super) fn partial(bytes: &[u8]) -> Option<Kubeconfig> {
    let node = tree::parse(bytes, CONFIG.syntax).ok()?;
    let kind = CONFIG.find_kind(&node).ok()?;
    (kind.decode)(&node, &mut Decoder::new(CONFIG.mode))
}

/// Decodes strictly and keeps only the unknown-field diagnostics.
pub(super) fn unknown_fields(bytes: &[u8]) -> Diagnostics {
    let strict = Versions { mode: DecodeMode::Strict, ..CONFIG };
    let found = strict.decode(bytes).err().unwrap_or_default().into_iter();
    found.filter(|diagnostic| diagnostic.kind == DiagnosticKind::UnknownField).collect()
}

impl Decode for Kubeconfig {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Kubeconfig {
            preferences: fields.default("preferences"),
            clusters: named(fields, "clusters"),
            users: named(fields, "users"),
            contexts: named(fields, "contexts"),
            current_context: fields.default("current-context"),
            extensions: named(fields, "extensions"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for Preferences {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Preferences {
            colors: fields.default("colors"),
            extensions: named(fields, "extensions"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for NamedCluster {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| NamedCluster {
            name: fields.default("name"),
            cluster: fields.default("cluster"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for Cluster {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Cluster {
            server: fields.default("server"),
            tls_server_name: fields.default("tls-server-name"),
            insecure_skip_tls_verify: fields.default("insecure-skip-tls-verify"),
            certificate_authority: fields.default("certificate-authority"),
            certificate_authority_data: fields.default::<Base64>("certificate-authority-data").0,
            proxy_url: fields.default("proxy-url"),
            disable_compression: fields.default("disable-compression"),
            extensions: named(fields, "extensions"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for NamedAuthInfo {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| NamedAuthInfo {
            name: fields.default("name"),
            user: fields.default("user"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for AuthInfo {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AuthInfo {
            client_certificate: fields.default("client-certificate"),
            client_certificate_data: fields.default::<Base64>("client-certificate-data").0,
            client_key: fields.default("client-key"),
            client_key_data: fields.default("client-key-data"),
            token: fields.default("token"),
            token_file: fields.default("tokenFile"),
            impersonate: fields.default("as"),
            impersonate_uid: fields.default("as-uid"),
            impersonate_groups: fields.default("as-groups"),
            impersonate_user_extra: fields.default("as-user-extra"),
            username: fields.default("username"),
            password: fields.default("password"),
            auth_provider: fields.optional("auth-provider"),
            exec: fields.optional("exec"),
            extensions: named(fields, "extensions"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for AuthProviderConfig {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AuthProviderConfig {
            name: fields.default("name"),
            config: fields.default("config"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for ExecConfig {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let mut exec = decoder.object(node, |fields| ExecConfig {
            command: fields.default("command"),
            args: fields.within_secret(|fields| fields.default("args")),
            env: fields.default("env"),
            api_version: fields.default("apiVersion"),
            install_hint: fields.default("installHint"),
            provide_cluster_info: fields.default("provideClusterInfo"),
            interactive_mode: fields.default("interactiveMode"),
            other: fields.rest_if_lenient(),
        })?;
        let is_old = matches!(
            exec.api_version.as_str(),
            "client.authentication.k8s.io/v1beta1" | "client.authentication.k8s.io/v1alpha1"
        );
        if is_old && exec.interactive_mode == InteractiveMode::Unset {
            exec.interactive_mode = InteractiveMode::IfAvailable; // C109
        }
        Some(exec)
    }
}

impl Decode for ExecEnvVar {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ExecEnvVar {
            name: fields.default("name"),
            value: fields.default("value"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for NamedContext {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| NamedContext {
            name: fields.default("name"),
            context: fields.default("context"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for Context {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Context {
            cluster: fields.default("cluster"),
            user: fields.default("user"),
            namespace: fields.default("namespace"),
            extensions: named(fields, "extensions"),
            other: fields.rest_if_lenient(),
        })
    }
}

impl Decode for NamedExtension {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| NamedExtension {
            name: fields.default("name"),
            extension: fields.default("extension"),
            other: fields.rest_if_lenient(),
        })
    }
}

/// Decodes a list of named entries and reports duplicate names. Upstream's message includes the whole list, with tokens
/// and keys; this one does not.
// C105
fn named<T: Decode + Named>(fields: &mut Fields<'_>, name: &'static str) -> Vec<T> {
    let entries: Vec<T> = fields.default(name);
    let nodes = fields.node(name).and_then(Node::as_sequence).unwrap_or_default();
    let mut seen = HashSet::with_capacity(entries.len());
    for (index, (entry, node)) in entries.iter().zip(nodes).enumerate() {
        if !seen.insert(entry.name()) {
            let written = node.as_mapping().and_then(|mapping| mapping.last("name"));
            let span = written.map_or(node.span, |entry| entry.value.span);
            let message = format!("duplicate name {:?} in list", entry.name());
            let decoder = fields.decoder();
            let path = decoder.path().field(name).index(index).field("name");
            decoder.report_at(path, span, DiagnosticKind::Duplicate, message, None);
        }
    }
    entries
}

pub(super) trait Named {
    fn name(&self) -> &str;
}

macro_rules! named {
    ($($entry:ty),*) => {$(
        impl Named for $entry {
            fn name(&self) -> &str {
                &self.name
            }
        }
    )*};
}

named!(NamedCluster, NamedAuthInfo, NamedContext, NamedExtension);
