//! `client.authentication.k8s.io/v1alpha1`, removed from Kubernetes in 1.24: no cluster information, but the server
//! response that required a new credential.
// C202

use indexmap::IndexMap;

use super::v1::repeated_status;
use super::{ExecCredential, ExecCredentialSpec, ServerResponse, json};
use crate::decode::{Decode, Decoder};
use crate::tree::Node;

pub(super) const API_VERSION: &str = "client.authentication.k8s.io/v1alpha1";

pub(super) fn read(node: &Node, decoder: &mut Decoder) -> Option<ExecCredential> {
    decoder.object(node, |fields| {
        let spec = fields.default::<WireSpec>("spec").0;
        let status = fields.optional("status");
        repeated_status(node, fields.decoder());
        ExecCredential { spec, status }
    })
}

#[derive(Default)]
struct WireSpec(ExecCredentialSpec);

impl Decode for WireSpec {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            WireSpec(ExecCredentialSpec {
                cluster: None,
                interactive: fields.default("interactive"),
                response: fields.optional("response"),
            })
        })
    }
}

impl Decode for ServerResponse {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            let header: IndexMap<String, Vec<String>> = fields.default("header");
            ServerResponse { header: header.into_iter().collect(), code: fields.default("code") }
        })
    }
}

/// Writes `response` and `interactive` unless they are empty, with sorted header names like a Go map.
pub(super) fn write_spec(text: &mut String, spec: &ExecCredentialSpec) {
    json::key(text, "spec");
    text.push('{');
    if let Some(response) = &spec.response {
        write_response(text, response);
    }
    if spec.interactive {
        json::key(text, "interactive");
        text.push_str("true");
    }
    text.push('}');
}

fn write_response(text: &mut String, response: &ServerResponse) {
    json::key(text, "response");
    text.push('{');
    if !response.header.is_empty() {
        let mut header: Vec<_> = response.header.iter().collect();
        header.sort();
        json::key(text, "header");
        text.push('{');
        for (name, values) in header {
            json::key(text, name);
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                json::string(text, value);
            }
            text.push(']');
        }
        text.push('}');
    }
    if response.code != 0 {
        json::key(text, "code");
        text.push_str(&response.code.to_string());
    }
    text.push('}');
}
