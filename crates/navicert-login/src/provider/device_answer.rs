//! Answers of the device endpoint.

use std::time::Duration;

use navicert_client::oauth::{HttpAnswer, JsonObject};
use navicert_types::Secret;

use crate::error::LoginError;

/// Limit of a device login whose provider names none.
const DEFAULT_EXPIRY: Duration = Duration::from_secs(600);
/// Time between two polls if the provider names none.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);

/// The answer of a device endpoint.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAnswer {
    pub(crate) device_code: Secret<String>,
    pub(crate) user_code: String,
    pub(crate) verification_uri: String,
    pub(crate) verification_uri_complete: Option<String>,
    pub(crate) expires_in: Duration,
    pub(crate) interval: Duration,
}

impl DeviceAnswer {
    pub(crate) fn read(answer: &HttpAnswer, host: &str) -> Result<Self, LoginError> {
        let object = JsonObject::read(&answer.body).ok_or_else(|| answer.unexpected(host))?;
        let uri = object.text("verification_uri").or_else(|| object.text("verification_url"));
        match (object.secret("device_code"), object.text("user_code"), uri) {
            (Some(device_code), Some(user_code), Some(verification_uri)) => Ok(DeviceAnswer {
                device_code,
                user_code,
                verification_uri,
                verification_uri_complete: object.text("verification_uri_complete"),
                expires_in: object.seconds("expires_in").unwrap_or(DEFAULT_EXPIRY),
                interval: object.seconds("interval").unwrap_or(DEFAULT_INTERVAL),
            }),
            _ => Err(answer.unexpected(host).into()),
        }
    }
}
