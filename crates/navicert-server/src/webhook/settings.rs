//! `servers.webhook` of a `NavicertConfiguration`.

use std::time::Duration;

use navicert_types::decode::{Decode, Decoder};
use navicert_types::tree::Node;

use crate::setting_values::positive_duration;

/// Settings of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Path of TokenReview requests.
    pub path: String,
    /// Path of nginx and Envoy requests; `None` disables it.
    pub auth_path: Option<String>,
    /// Audiences of the API servers that use this webhook.
    // S221
    pub server_audiences: Vec<String>,
    /// Which audiences a response contains.
    pub audience_mode: AudienceMode,
    /// Return the reason for a rejection. The client logs it.
    // S219
    pub expose_errors: bool,
    /// Response while an issuer's keys are unavailable.
    // S220
    pub not_ready_status: NotReadyStatus,
    /// Time limit of a decision.
    pub timeout: Duration,
    /// Time limit for receiving a body.
    pub body_timeout: Duration,
    /// Maximum body size, in bytes.
    pub max_body_bytes: usize,
}

/// Which audiences a response contains.
// S221
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AudienceMode {
    /// The requested audiences listed in `serverAudiences`.
    #[default]
    Server,
    /// The requested audiences in the token's `aud` claim.
    Token,
}

/// Response while an issuer's keys are unavailable.
// S220
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotReadyStatus {
    /// 200 with an error: kube-apiserver does not cache it and does not retry.
    #[default]
    Ok,
    /// 503.
    Unavailable,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        WebhookSettings {
            path: "/authenticate".to_owned(),
            auth_path: Some("/auth".to_owned()),
            server_audiences: Vec::new(),
            audience_mode: AudienceMode::Server,
            expose_errors: false,
            not_ready_status: NotReadyStatus::Ok,
            timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            max_body_bytes: 1 << 20,
        }
    }
}

impl Decode for WebhookSettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let default = WebhookSettings::default();
        decoder.object(node, |fields| WebhookSettings {
            path: fields.optional::<UrlPath>("path").map_or(default.path, |path| path.0),
            auth_path: match fields.optional::<UrlPath>("authPath") {
                Some(path) => Some(path.0).filter(|path| !path.is_empty()),
                None => default.auth_path,
            },
            server_audiences: fields.default("serverAudiences"),
            audience_mode: fields.default("audienceMode"),
            expose_errors: fields.default("exposeErrors"),
            not_ready_status: fields.default("notReadyStatus"),
            timeout: positive_duration(fields, "timeout").unwrap_or(default.timeout),
            body_timeout: positive_duration(fields, "bodyTimeout").unwrap_or(default.body_timeout),
            max_body_bytes: fields
                .optional::<u32>("maxBodyBytes")
                .map_or(default.max_body_bytes, |bytes| bytes as usize),
        })
    }
}

impl Decode for AudienceMode {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.one_of(node, &[("server", AudienceMode::Server), ("token", AudienceMode::Token)])
    }
}

impl Decode for NotReadyStatus {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let number = u16::decode(node, decoder)?;
        match number {
            200 => Some(NotReadyStatus::Ok),
            503 => Some(NotReadyStatus::Unavailable),
            _ => {
                decoder.report_invalid_value(node, "expected 200 or 503");
                None
            }
        }
    }
}

/// An absolute path without a query.
#[derive(Default)]
struct UrlPath(String);

impl Decode for UrlPath {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let path = String::decode(node, decoder)?;
        let is_path = path.starts_with('/')
            && path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte));
        if !is_path && !path.is_empty() {
            decoder.report_invalid_value(node, "expected a path that begins with `/`, without `?` and `#`");
            return None;
        }
        Some(UrlPath(path))
    }
}
