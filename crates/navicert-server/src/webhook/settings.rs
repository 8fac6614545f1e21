//! The webhook's settings: `servers.webhook` of a `NavicertConfiguration`.

use std::time::Duration;

use navicert_types::decode::{Decode, Decoder};
use navicert_types::tree::Node;

use crate::settings::positive_duration;

/// How the webhook answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where TokenReviews are sent to.
    pub path: String,
    /// Where nginx and Envoy ask; `None`: nowhere.
    pub auth_path: Option<String>,
    /// What the API servers that are served are called (S221).
    pub server_audiences: Vec<String>,
    /// Whose audiences are told.
    pub audience_mode: AudienceMode,
    /// Say why a token is bad. It is logged by whoever asked (S219).
    pub expose_errors: bool,
    /// How an issuer that is not ready is answered (S220).
    pub not_ready_status: NotReadyStatus,
    /// How long a decision may take.
    pub timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// How large a body may be.
    pub most_bytes: usize,
}

/// Whose audiences are told (S221).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AudienceMode {
    /// Those asked for that are among `serverAudiences`.
    #[default]
    Server,
    /// Those asked for that are in the token's own `aud`.
    Token,
}

/// How an issuer that is not ready is answered (S220).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotReadyStatus {
    /// 200, with an error in the answer: kube-apiserver does not keep it and does not ask again.
    #[default]
    Ok,
    /// 503.
    Unavailable,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            path: "/authenticate".to_owned(),
            auth_path: Some("/auth".to_owned()),
            server_audiences: Vec::new(),
            audience_mode: AudienceMode::Server,
            expose_errors: false,
            not_ready_status: NotReadyStatus::Ok,
            timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            most_bytes: 1 << 20,
        }
    }
}

impl Decode for Settings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let default = Settings::default();
        decoder.object(node, |fields| Settings {
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
            most_bytes: fields
                .optional::<u32>("maxBodyBytes")
                .map_or(default.most_bytes, |bytes| bytes as usize),
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
                decoder.invalid_value(node, "expected 200 or 503");
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
            decoder.invalid_value(node, "expected a path that begins with `/`, without `?` and `#`");
            return None;
        }
        Some(UrlPath(path))
    }
}
