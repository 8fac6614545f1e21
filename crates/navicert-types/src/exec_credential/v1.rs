//! `client.authentication.k8s.io/v1`.

use super::json;
use super::{ExecCluster, ExecCredential, ExecCredentialSpec, ExecCredentialStatus};
use crate::decode::{Base64, Decode, Decoder};
use crate::diagnostic::DiagnosticKind;
use crate::tree::{Mapping, Node};

pub(super) const API_VERSION: &str = "client.authentication.k8s.io/v1";

/// Decodes a document. Types are checked even in fields that are not used.
// C242
pub(super) fn read(node: &Node, decoder: &mut Decoder) -> Option<ExecCredential> {
    decoder.object(node, |fields| {
        let spec = fields.default::<WireSpec>("spec").0;
        let status = fields.optional("status");
        repeated_status(node, fields.decoder());
        ExecCredential { spec, status }
    })
}

/// Rejects a duplicate `status`. Upstream merges them, which makes the effective token ambiguous.
// C242
pub(super) fn repeated_status(node: &Node, decoder: &mut Decoder) {
    let entries = node.as_mapping().map(Mapping::entries).unwrap_or_default();
    if let Some(second) = entries.iter().filter(|entry| entry.key == "status").nth(1) {
        let path = decoder.path().field("status");
        let message = "duplicate field".to_owned();
        decoder.report_at(path, second.key_span, DiagnosticKind::Duplicate, message, None);
    }
}

#[derive(Default)]
struct WireSpec(ExecCredentialSpec);

impl Decode for WireSpec {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            WireSpec(ExecCredentialSpec {
                cluster: fields.optional("cluster"),
                interactive: fields.default("interactive"),
                response: None,
            })
        })
    }
}

impl Decode for ExecCluster {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ExecCluster {
            server: fields.default("server"),
            tls_server_name: fields.default("tls-server-name"),
            insecure_skip_tls_verify: fields.default("insecure-skip-tls-verify"),
            certificate_authority_data: fields.default::<Base64>("certificate-authority-data").0,
            proxy_url: fields.default("proxy-url"),
            disable_compression: fields.default("disable-compression"),
            config: fields.default("config"),
        })
    }
}

impl Decode for ExecCredentialStatus {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            let expiration: Option<crate::time::Time> = fields.optional("expirationTimestamp");
            ExecCredentialStatus {
                expiration_timestamp: expiration.filter(|time| !time.is_zero()),
                token: fields.default("token"),
                client_certificate_data: fields.default("clientCertificateData"),
                client_key_data: fields.default("clientKeyData"),
            }
        })
    }
}

/// Writes `spec`: `cluster` if present, `interactive` always.
pub(super) fn write_spec(text: &mut String, spec: &ExecCredentialSpec) {
    json::key(text, "spec");
    text.push('{');
    if let Some(cluster) = &spec.cluster {
        write_cluster(text, cluster);
    }
    json::key(text, "interactive");
    text.push_str(if spec.interactive { "true" } else { "false" });
    text.push('}');
}

/// `server` and `config` always, the others unless empty.
// C211
fn write_cluster(text: &mut String, cluster: &ExecCluster) {
    json::key(text, "cluster");
    text.push('{');
    json::member(text, "server", &cluster.server);
    if !cluster.tls_server_name.is_empty() {
        json::member(text, "tls-server-name", &cluster.tls_server_name);
    }
    if cluster.insecure_skip_tls_verify {
        json::key(text, "insecure-skip-tls-verify");
        text.push_str("true");
    }
    if !cluster.certificate_authority_data.is_empty() {
        let data = Base64::encode(&cluster.certificate_authority_data);
        json::member(text, "certificate-authority-data", &data);
    }
    if !cluster.proxy_url.is_empty() {
        json::member(text, "proxy-url", &cluster.proxy_url);
    }
    if cluster.disable_compression {
        json::key(text, "disable-compression");
        text.push_str("true");
    }
    json::key(text, "config");
    json::tree(text, &cluster.config);
    text.push('}');
}

/// Writes `status` without empty fields.
pub(super) fn write_status(text: &mut String, status: &ExecCredentialStatus) {
    json::key(text, "status");
    text.push('{');
    if let Some(time) = status.expiration_timestamp {
        json::member(text, "expirationTimestamp", &time.to_wire());
    }
    for (name, value) in [
        ("token", status.token.expose()),
        ("clientCertificateData", &status.client_certificate_data),
        ("clientKeyData", status.client_key_data.expose()),
    ] {
        if !value.is_empty() {
            json::member(text, name, value);
        }
    }
    text.push('}');
}
