//! Runs a plugin once: encodes the request, decodes the response.
// I87–I108, I117

use std::sync::Arc;

use navicert_plugin::{Command, Completed, ProcessGroup, RunError, Stderr, StderrTail, Stdin};
use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;
use navicert_types::redact;

use super::resolve::Caller;
use super::{CacheEntry, Provider, ProviderSettings, Shared};
use crate::config::TokenCacheType;
use crate::error::{ProviderError, StartError};
use crate::metrics::{MetricsEvent, RunEnd};
use crate::profile::Profile;
use crate::request;
use crate::response::Response;

/// How long to wait for end of file on stdout after the plugin has exited.
// I96
const EOF_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(500);
/// Maximum length of the stderr shown in errors.
const MAX_STDERR_BYTES: usize = 4 << 10;
/// Shorter values are not redacted, since they would match ordinary text.
const MIN_SECRET_BYTES: usize = 4;

impl Provider {
    /// Checks that the executable exists and is allowed.
    pub(super) fn check_executable(&self, settings: &ProviderSettings) -> Result<(), StartError> {
        let permitted = settings.policy.permit(self.command(settings, Secret::default()));
        let failed = |source| StartError::Executable { provider: self.name().to_owned(), source };
        permitted.map(drop).map_err(failed)
    }

    /// Runs the plugin and decodes its response.
    pub(super) fn run(
        &self,
        image: &str,
        caller: &Caller,
        shared: &Shared,
    ) -> Result<Arc<CacheEntry>, ProviderError> {
        let token = caller.token(shared).map_err(|source| self.account_error(source))?;
        let request = CredentialProviderRequest {
            image: image.to_owned(),
            service_account_token: token.clone(),
            service_account_annotations: caller.annotations.clone(),
        };
        let stdin = request::encode(&request, self.config().wire_version);
        let completed = self.execute(image, stdin, &token, shared)?;
        let stderr = self.redacted_stderr(completed.stderr.as_ref(), &token);
        self.store_stderr(&stderr);
        let failed = |source: RunError| ProviderError::Run {
            provider: self.name().to_owned(),
            image: image.to_owned(),
            source: Box::new(source),
            stderr: stderr.clone(),
        };
        let stdout = completed.require_success().map_err(failed)?;
        let response = Response::decode(stdout.expose(), self.config().wire_version).map_err(|source| {
            let (provider, reason) = (self.name(), source.reason());
            shared.settings.recorder.record(&MetricsEvent::ResponseRejected { provider, reason });
            let (provider, image) = (provider.to_owned(), image.to_owned());
            ProviderError::Response { provider, image, source: Box::new(source), stderr: stderr.clone() }
        })?;
        self.check_echo(&response, &token)?;
        let default = self.config().default_cache_duration;
        Ok(Arc::new(CacheEntry::new(response, image, default, &shared.settings)))
    }

    fn execute(
        &self,
        image: &str,
        stdin: Secret<Vec<u8>>,
        token: &Secret<String>,
        shared: &Shared,
    ) -> Result<Completed, ProviderError> {
        let (settings, provider) = (&shared.settings, self.name());
        let permitted = settings.policy.permit(self.command(settings, stdin)).map_err(|source| {
            ProviderError::Permit {
                provider: provider.to_owned(),
                image: image.to_owned(),
                source: Box::new(source),
            }
        })?;
        let _slot = shared.slots.acquire();
        let started = settings.clock.monotonic();
        settings.recorder.record(&MetricsEvent::RunStarted { provider });
        let result = settings.runner.run(permitted);
        let end = match &result {
            Ok(completed) if completed.exit.is_success() => RunEnd::Success,
            Err(RunError::TimedOut { .. }) => RunEnd::TimedOut,
            Ok(_) | Err(_) => RunEnd::Failed,
        };
        let took = settings.clock.monotonic().saturating_sub(started);
        settings.recorder.record(&MetricsEvent::RunEnded { provider, took, end });
        result.map_err(|source| ProviderError::Run {
            provider: provider.to_owned(),
            image: image.to_owned(),
            stderr: self.redacted_stderr(source.stderr(), token),
            source: Box::new(source),
        })
    }

    fn command(&self, settings: &ProviderSettings, stdin: Secret<Vec<u8>>) -> Command {
        let config = self.config();
        let program = settings.bin_dir.join(&config.name);
        let mut command = Command::new(program, settings.environment.clone())
            .args(config.args.iter().map(|argument| argument.expose().clone()))
            .stdin(Stdin::Bytes(stdin))
            .stdout_cap(settings.limits.stdout)
            .stderr(Stderr::Tail(settings.limits.stderr))
            .limit(Some(settings.limits.run))
            .grace(std::time::Duration::ZERO)
            .eof_wait(EOF_TIMEOUT)
            .process_group(ProcessGroup::NewKilledAtEnd);
        for (name, value) in &config.env {
            // The kubelet passes on a variable without a name, which no program can read (I60).
            if !(name.is_empty() && settings.profile == Profile::Kube) {
                command = command.env(name.clone(), value.expose().clone());
            }
        }
        command
    }

    /// Rejects a service account token returned as a password; it would be cached for other pods.
    // I117
    fn check_echo(&self, response: &Response, token: &Secret<String>) -> Result<(), ProviderError> {
        let shares_tokens =
            self.config().token.as_ref().is_some_and(|token| token.cache_type != TokenCacheType::Token);
        let echoes = |password: &Secret<String>| !token.is_empty() && password == token;
        if shares_tokens && response.auth.iter().any(|(_, credential)| echoes(&credential.password)) {
            return Err(ProviderError::EchoedToken { provider: self.name().to_owned() });
        }
        Ok(())
    }

    /// The end of the plugin's stderr, redacted and safe for a terminal.
    // I244, I266
    fn redacted_stderr(&self, stderr: Option<&StderrTail>, token: &Secret<String>) -> String {
        let Some(stderr) = stderr else { return String::new() };
        let text = stderr.text();
        let excess = text.len().saturating_sub(MAX_STDERR_BYTES);
        let start = (excess..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let mut shown = text.get(start..).unwrap_or_default().to_owned();
        let config = self.config();
        let secrets =
            config.env.iter().filter(|(name, _)| redact::is_secret_name(name)).map(|(_, value)| value);
        for secret in secrets.chain(&config.args).chain([token]) {
            let secret = secret.expose();
            let is_flag = secret.starts_with('-') && !secret.contains('=');
            if secret.len() >= MIN_SECRET_BYTES && !is_flag {
                shown = shown.replace(secret.as_str(), redact::REDACTED);
            }
        }
        redact::terminal(&redact_tokens(&shown)).into_owned()
    }
}

/// Redacts words that look like JSON Web Tokens.
fn redact_tokens(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_part(c)) {
        let word = piece.trim_end_matches(|c| !is_part(c));
        let is_token = word.starts_with("eyJ") && word.split('.').count() >= 3;
        if is_token {
            shown.push_str(redact::REDACTED);
            shown.push_str(piece.strip_prefix(word).unwrap_or_default());
        } else {
            shown.push_str(piece);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_words_that_look_like_tokens() {
        // I266
        let shown = redact_tokens("got eyJhbGciOi.eyJpc3Mi.c2ln, \"eyJa.b.c\" and eyJonly from api.eyJ.io\n");
        assert_eq!(shown, "got REDACTED, \"REDACTED\" and eyJonly from api.eyJ.io\n");
    }
}
