//! Device code (RFC 8628): the person logs in with a browser anywhere, and enters or compares a code.

use std::time::Duration;

use navicert_types::redact;

use super::parameters::{flag_parameters, pkce_verifier};
use super::{GrantRun, requested_scopes};
use crate::browser::OpenableUrl;
use crate::cache::Entry;
use crate::check::Expectation;
use crate::error::LoginError;
use crate::provider::{
    DeviceAnswer, HttpAnswer, Metadata, OAuthFailure, Repeat, TokenFailure, check_address, classify,
};
use crate::random;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Added to the interval whenever the provider asks to slow down.
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The longest interval after faults.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

impl GrantRun<'_> {
    pub(super) async fn device(&self) -> Result<Entry, LoginError> {
        let host = self.request.host().to_owned();
        if !self.person.reads_messages {
            return Err(LoginError::LoginNeeded { host, command: self.request.command_line() });
        }
        let metadata = self.client.metadata().await?;
        if metadata.device_authorization_endpoint.is_none() {
            let offered = metadata.grant_types_supported.join(" ");
            return Err(LoginError::Grant { host, grant: "device-code".to_owned(), offered });
        }
        let learned_without = self.ended.is_some_and(|entry| entry.memo.device_without_pkce);
        let mut verifier = if learned_without { None } else { pkce_verifier(self.request, &metadata)? };
        let mut answer =
            self.start_device(&metadata, verifier.as_ref().map(random::hashed).as_deref()).await?;
        let mut without_pkce = learned_without;
        let failure = OAuthFailure::read(&answer);
        if failure.is_some_and(|failure| failure.code == "invalid_request") && verifier.take().is_some() {
            answer = self.start_device(&metadata, None).await?;
            without_pkce = true;
        }
        if let Some(failure) = OAuthFailure::read(&answer) {
            return Err(classify(&failure, self.request, Some(&metadata), "", "device-code"));
        }
        let device = DeviceAnswer::read(&answer, &host)?;
        check_address(&device.verification_uri, &self.request.issuer)?;
        self.show(&device)?;
        let mut entry =
            self.poll(&device, verifier.as_ref().map(|verifier| verifier.expose().as_str())).await?;
        if without_pkce && !entry.memo.device_without_pkce {
            entry.memo.device_without_pkce = true;
            crate::store::store(self.folder, self.context, &mut entry);
        }
        Ok(entry)
    }

    async fn start_device(
        &self,
        metadata: &Metadata,
        challenge: Option<&str>,
    ) -> Result<HttpAnswer, LoginError> {
        let scope = requested_scopes(self.request, metadata);
        let parameters = flag_parameters(self.request);
        let mut fields = vec![("scope", scope.as_str())];
        fields.extend(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if let Some(challenge) = challenge {
            fields.push(("code_challenge", challenge));
            fields.push(("code_challenge_method", "S256"));
        }
        let host = self.request.host().to_owned();
        let endpoint = |metadata: &Metadata| {
            let missing = || LoginError::Grant {
                host: host.clone(),
                grant: "device-code".to_owned(),
                offered: metadata.grant_types_supported.join(" "),
            };
            metadata.device_authorization_endpoint.clone().ok_or_else(missing)
        };
        self.client.post(endpoint, &fields, Repeat::Always).await
    }

    /// Shows address and code, and opens the browser if there is one. The code is shown all the same, to compare.
    fn show(&self, device: &DeviceAnswer) -> Result<(), LoginError> {
        let messages = &self.context.messages;
        let minutes = device.expires_in.as_secs().div_ceil(60);
        messages.show(&format!(
            "To log in to {}, open {} and enter the code {} (valid for {minutes} min).",
            self.request.host(),
            redact::line(&device.verification_uri),
            redact::line(&device.user_code),
        ));
        messages.show("Only go on if you started this login yourself.");
        let complete = device.verification_uri_complete.as_deref();
        let complete = complete.filter(|url| check_address(url, &self.request.issuer).is_ok());
        if let (Some(url), false) = (complete, self.request.browser.skip_open)
            && let (Ok(url), Some(browser)) = (OpenableUrl::parse(url), self.browser()?)
        {
            // The address was shown: a browser that does not open changes nothing.
            tokio::task::spawn_blocking(move || browser.open(&url));
        }
        Ok(())
    }

    async fn poll(&self, device: &DeviceAnswer, verifier: Option<&str>) -> Result<Entry, LoginError> {
        let mut fields =
            vec![("grant_type", GRANT_TYPE), ("device_code", device.device_code.expose().as_str())];
        fields.extend(verifier.map(|verifier| ("code_verifier", verifier)));
        // The default limit of a browser login does not shorten a device login.
        let limit = self.request.timeout.map_or(device.expires_in, |limit| limit.min(device.expires_in));
        let deadline = self.context.clock.monotonic().saturating_add(limit);
        let mut interval = device.interval;
        let mut is_first = true;
        loop {
            self.context.timer.sleep(interval).await;
            if self.context.clock.monotonic() >= deadline {
                return Err(LoginError::TimedOut { limit });
            }
            let failure = match self.client.token_request(&fields, Repeat::Never).await {
                Ok(answer) => return self.finish(answer, Expectation::default()).await,
                Err(failure) => failure,
            };
            match failure {
                TokenFailure::OAuth(failure) => match failure.code.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval = interval.saturating_add(SLOW_DOWN),
                    "expired_token" => return Err(LoginError::TimedOut { limit }),
                    "access_denied" if is_first => {
                        return Err(LoginError::DeviceBlocked { host: self.request.host().to_owned() });
                    }
                    _ => return Err(self.token_error(TokenFailure::OAuth(failure), "", "device-code").await),
                },
                TokenFailure::Login(error) if error.is_transient() => {
                    interval = interval.saturating_mul(2).max(Duration::from_secs(1)).min(MAX_INTERVAL);
                }
                TokenFailure::Login(error) => return Err(error),
            }
            is_first = false;
        }
    }
}
