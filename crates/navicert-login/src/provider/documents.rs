//! The provider's documents: kept for a day, fetched anew when an endpoint or a key is not known.

use std::time::Duration;

use navicert_authn::AuthnProfile;
use navicert_authn::jwks::KeySet;
use navicert_client::oauth::discovery_url;

use super::metadata::Metadata;
use super::{ProviderClient, Repeat};
use crate::cache::ProviderDocuments;
use crate::error::LoginError;

/// How long a discovery document is used.
const DISCOVERY_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Keys are not fetched more often.
const KEY_REFETCH_INTERVAL: Duration = Duration::from_secs(60);

impl ProviderClient<'_> {
    /// Reads the metadata from the cache, unless it is old or `newer` is set, and fetches it otherwise.
    pub(super) async fn load_metadata(&self, newer: bool) -> Result<Metadata, LoginError> {
        let url = discovery_url(&self.request.issuer);
        let now = self.now();
        let cached: Option<ProviderDocuments> = self.folder.read_provider(&self.provider_key);
        let is_recent = |documents: &&ProviderDocuments| {
            let age = Duration::try_from(now.duration_since(documents.discovered_at));
            age.is_ok_and(|age| age < DISCOVERY_LIFETIME)
        };
        let usable = cached.as_ref().filter(|_| !newer).filter(is_recent).and_then(|documents| {
            Metadata::read(documents.discovery.as_bytes(), &url, self.request)
                .ok()
                .map(|found| (found, documents))
        });
        if let Some((metadata, documents)) = usable {
            let mut state = self.state();
            state.documents = Some(documents.clone());
            state.metadata = Some(metadata.clone());
            state.is_cached = true;
            return Ok(metadata);
        }
        let answer = self.with_retries(Repeat::Always, || self.http.get(&url)).await?;
        if answer.status != 200 {
            let why = format!("status {}", answer.status);
            return Err(LoginError::Discovery { url, why });
        }
        let metadata = Metadata::read(&answer.body, &url, self.request)?;
        let documents = ProviderDocuments {
            discovery: String::from_utf8_lossy(&answer.body).into_owned(),
            discovered_at: now,
            keys: cached.as_ref().and_then(|cached| cached.keys.clone()),
            keys_fetched_at: cached.as_ref().and_then(|cached| cached.keys_fetched_at),
        };
        self.folder.write_provider(&self.provider_key, &documents);
        let mut state = self.state();
        state.documents = Some(documents);
        state.metadata = Some(metadata.clone());
        state.is_cached = false;
        Ok(metadata)
    }

    /// The key set as it was fetched.
    pub(crate) async fn keys_text(&self) -> Result<String, LoginError> {
        self.load_keys(false).await?;
        let documents = self.state().documents.clone();
        Ok(documents.and_then(|documents| documents.keys).unwrap_or_default())
    }

    /// The keys. With `newer` they are fetched, unless that was done a short time ago: then `None`.
    pub(super) async fn load_keys(&self, newer: bool) -> Result<Option<KeySet>, LoginError> {
        let metadata = self.metadata().await?;
        let now = self.now();
        let (cached, fetched_at, fetched_here) = {
            let state = self.state();
            let documents = state.documents.as_ref();
            (
                documents.and_then(|documents| documents.keys.clone()),
                documents.and_then(|documents| documents.keys_fetched_at),
                state.keys_fetched_here,
            )
        };
        let parse = |text: &str| KeySet::parse(text.as_bytes(), &AuthnProfile::HARDENED).ok();
        if !newer && let Some(keys) = cached.as_deref().and_then(parse) {
            return Ok(Some(keys));
        }
        let age = fetched_at.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
        if newer && (fetched_here || age.is_some_and(|age| age < KEY_REFETCH_INTERVAL)) {
            return Ok(None);
        }
        let host = crate::request::host_of(&metadata.jwks_uri);
        let answer = self.with_retries(Repeat::Always, || self.http.get(&metadata.jwks_uri)).await?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let keys = parse(&text).filter(|_| answer.status == 200).ok_or_else(|| answer.unexpected(host))?;
        let mut state = self.state();
        state.keys_fetched_here = true;
        if let Some(documents) = &mut state.documents {
            documents.keys = Some(text);
            documents.keys_fetched_at = Some(now);
            self.folder.write_provider(&self.provider_key, documents);
        }
        Ok(Some(keys))
    }
}
