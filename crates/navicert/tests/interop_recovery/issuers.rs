//! The issuers: a real provider behind a proxy that disturbs its keys.

use std::time::Duration;

use bytes::Bytes;
use navicert_testkit::services::fault_proxy::{FaultProxy, KeysCaching, KeysFault};
use navicert_testkit::services::openid_provider::{AUDIENCE, Dex, NpmProvider};
use navicert_testkit::{Ca, HttpClient};
use serde_json::{Value, json};

/// Which provider.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProviderKind {
    Npm,
    Dex,
}

enum Provider {
    Npm(NpmProvider),
    Dex(Dex),
}

/// A provider and its proxy.
pub(crate) struct Issuer {
    proxy: FaultProxy,
    provider: Provider,
    client: HttpClient,
    keys_url: String,
    _dir: tempfile::TempDir,
}

impl Issuer {
    /// `None`, reported as skipped, if the provider is not installed.
    pub(crate) async fn start(
        ca: &Ca,
        kind: ProviderKind,
        caching: KeysCaching,
        key_lifetime: &str,
    ) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let keys_path = match kind {
            ProviderKind::Npm => "/jwks",
            ProviderKind::Dex => "/keys",
        };
        let proxy = FaultProxy::start(ca, keys_path, caching);
        let provider = match kind {
            ProviderKind::Npm => {
                let provider = NpmProvider::start(ca, dir.path(), Some(&proxy.url())).await?;
                proxy.forward_to(provider.address());
                Provider::Npm(provider)
            }
            ProviderKind::Dex => {
                let provider = Dex::start(dir.path(), &proxy.url(), key_lifetime).await?;
                proxy.forward_to(provider.address());
                Provider::Dex(provider)
            }
        };
        let keys_url = format!("{}{keys_path}", proxy.url());
        Some(Issuer { proxy, provider, client: HttpClient::trusting(ca), keys_url, _dir: dir })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.provider {
            Provider::Npm(_) => "oidc-provider",
            Provider::Dex(_) => "dex",
        }
    }

    /// Its entry in an AuthenticationConfiguration.
    pub(crate) fn authenticator(&self, ca: &Ca) -> Value {
        json!({
            "issuer": {"url": self.proxy.url(), "audiences": [AUDIENCE], "certificateAuthority": ca.pem()},
            "claimMappings": {"username": {"claim": "sub", "prefix": "recovery:"}},
        })
    }

    /// A new token, signed with the newest key.
    pub(crate) async fn token(&self) -> String {
        match &self.provider {
            Provider::Npm(provider) => provider.token().await,
            Provider::Dex(dex) => dex.token().await,
        }
    }

    /// Signs with a new key from now on. dex loses its earlier keys, because it is started again.
    pub(crate) async fn rotate(&self) {
        match &self.provider {
            Provider::Npm(provider) => provider.rotate().await,
            Provider::Dex(dex) => dex.restart().await,
        }
    }

    /// The key set as it is published now.
    pub(crate) async fn keys(&self) -> Bytes {
        Box::pin(self.client.get(&self.keys_url)).await.unwrap().body
    }

    pub(crate) fn inject(&self, fault: KeysFault, lasts: Duration) {
        self.proxy.inject(fault, lasts);
    }
}
