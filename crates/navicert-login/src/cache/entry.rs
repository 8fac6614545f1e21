//! One cached session: its tokens, and what is known about them. Lifetimes are counted from receipt, so that a wrong local
//! clock does not matter.

use std::time::Duration;

use navicert_types::{Secret, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

use super::time_text;
use crate::key::KeyFields;

/// `apiVersion` of an entry.
pub(super) const API_VERSION: &str = "navicert/v1alpha1";
/// `kind` of an entry.
pub(super) const KIND: &str = "LoginSession";
/// How far the clock may be behind the time of receipt.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(60);

/// A cached session. `Debug` shows no token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// What the entry is for.
    pub key: KeyFields,
    /// The ID token.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "expose_for_storage")]
    pub id_token: Option<Secret<String>>,
    /// The access token, if it is handed over or exchanged.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "expose_for_storage")]
    pub access_token: Option<Secret<String>>,
    /// The token that was exchanged for the access token.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "expose_for_storage")]
    pub exchanged_token: Option<Secret<String>>,
    /// The refresh token.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "expose_for_storage")]
    pub refresh_token: Option<Secret<String>>,
    /// The granted scopes, if the provider said them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// `sub` of the ID token.
    #[serde(default)]
    pub subject: String,
    /// A name for people.
    #[serde(default)]
    pub display: String,
    /// When the token was received, by the local clock.
    #[serde(with = "time_text")]
    pub received_at: Timestamp,
    /// When the token expires, by the local clock.
    #[serde(with = "time_text")]
    pub local_expiry: Timestamp,
    /// When the access token expires, by the local clock, if it was exchanged: the other times are those of the new token.
    #[serde(default, with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub base_expiry: Option<Timestamp>,
    /// When the person last logged in.
    #[serde(with = "time_text")]
    pub logged_in_at: Timestamp,
    /// When the refresh token expires, if the provider said so.
    #[serde(default, with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub refresh_expires_at: Option<Timestamp>,
    /// The provider's time minus the local time at receipt.
    #[serde(default)]
    pub skew_seconds: i64,
    /// Hash of the nonce of the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce_sha256: Option<String>,
    /// `auth_time` of the ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_time: Option<i64>,
    /// `azp` of the ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azp: Option<String>,
    /// The machine that wrote the entry.
    #[serde(default)]
    pub host: String,
    /// The arguments of the request without secrets, so that a session can be ended without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// What was learned about the provider.
    #[serde(default)]
    pub memo: Memo,
    /// Counters.
    #[serde(default)]
    pub history: History,
    /// Whether its file is sealed by a key of the keyring.
    #[serde(skip)]
    pub is_sealed: bool,
    /// The processes that the last stored token was handed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed_to: Vec<Recipient>,
}

/// What was learned about the provider, so that it is not tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memo {
    /// A refresh brings an ID token only if it names the scopes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refresh_needs_scope: bool,
    /// The client secret belongs into the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_auth: Option<String>,
    /// The device endpoint rejects PKCE.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub device_without_pkce: bool,
    /// The note about secrets on the command line was shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secret_note_shown: bool,
}

/// Counters of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// Logins of the person, and grants without one.
    pub logins: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// A failure, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFailure {
    /// When.
    #[serde(with = "time_text")]
    pub at: Timestamp,
    /// Its code.
    pub code: String,
}

/// A process that a token was handed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// Its id.
    pub pid: u32,
    /// When it started, in the system's own unit.
    pub start_time: u64,
    /// When it was handed the token.
    #[serde(with = "time_text")]
    pub at: Timestamp,
    /// When it was handed another token before that one had to be renewed.
    #[serde(default, with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<Timestamp>,
}

impl Entry {
    /// An entry without tokens.
    pub fn new(key: KeyFields, now: Timestamp) -> Self {
        Entry {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            key,
            id_token: None,
            access_token: None,
            exchanged_token: None,
            refresh_token: None,
            scope: None,
            subject: String::new(),
            display: String::new(),
            received_at: now,
            local_expiry: now,
            base_expiry: None,
            logged_in_at: now,
            refresh_expires_at: None,
            skew_seconds: 0,
            nonce_sha256: None,
            auth_time: None,
            azp: None,
            host: String::new(),
            arguments: Vec::new(),
            memo: Memo::default(),
            history: History::default(),
            is_sealed: false,
            handed_to: Vec::new(),
        }
    }

    /// The token that is handed over, if there is one.
    pub fn token(&self) -> Option<&Secret<String>> {
        match (&self.key.exchange_audience, self.key.token.as_str()) {
            (Some(_), _) => self.exchanged_token.as_ref(),
            (None, "access") => self.access_token.as_ref(),
            (None, _) => self.id_token.as_ref(),
        }
    }

    /// Whether the access token can be exchanged once more without a refresh.
    pub(crate) fn can_exchange(&self, now: Timestamp) -> bool {
        let is_valid = self.base_expiry.is_some_and(|expiry| now < expiry);
        self.key.exchange_audience.is_some()
            && self.access_token.is_some()
            && self.is_plausible(now)
            && is_valid
    }

    /// Whether the token can be handed over as it is.
    pub fn is_fresh(&self, now: Timestamp, min_validity: Duration) -> bool {
        let renewal = self.local_expiry.checked_sub(self.margin(min_validity));
        self.token().is_some() && self.is_plausible(now) && renewal.is_ok_and(|renewal| now < renewal)
    }

    /// Whether the token has not expired: good enough if the provider fails.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.token().is_some() && self.is_plausible(now) && now < self.local_expiry
    }

    /// The expiry to tell clients: early enough that they ask again while there is time to renew. Whole seconds.
    pub fn handed_expiry(&self, min_validity: Duration) -> Timestamp {
        let half = self.margin(min_validity) / 2;
        let expiry = self.local_expiry.checked_sub(half).unwrap_or(self.local_expiry);
        Timestamp::from_second(expiry.as_second()).unwrap_or(expiry)
    }

    /// Whether the person's login is longer ago than allowed.
    pub fn is_over(&self, now: Timestamp, session_max: Option<Duration>) -> bool {
        let end = session_max.and_then(|limit| self.logged_in_at.checked_add(limit).ok());
        end.is_some_and(|end| now >= end)
    }

    /// The clock is not set back behind the time of receipt.
    fn is_plausible(&self, now: Timestamp) -> bool {
        now.checked_add(MAX_CLOCK_STEP).is_ok_and(|now| now >= self.received_at)
    }

    /// Remaining validity at which the token is renewed: at most a fifth of its lifetime.
    fn margin(&self, min_validity: Duration) -> Duration {
        let lifetime = self.local_expiry.duration_since(self.received_at);
        let lifetime = Duration::try_from(lifetime).unwrap_or_default();
        min_validity.min(lifetime / 5)
    }
}

/// Writes a token into an entry's file: the only place where one is serialised.
fn expose_for_storage<S: Serializer>(
    token: &Option<Secret<String>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match token {
        Some(token) => serializer.serialize_str(token.expose()),
        None => serializer.serialize_none(),
    }
}
