//! Validates the values of a merged configuration.
// I35–I60

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use navicert_types::image_credential::WireVersion;
use navicert_types::image_provider_config::{CacheType, CredentialProvider, TokenAttributes};

use super::{
    ConfigProblem, ConfigStage, FieldErrorType, ProviderConfig, ProviderSource, Step, TokenCacheType,
    TokenSettings,
};
use crate::pattern::ImagePattern;
use crate::profile::Profile;

/// Returns the valid providers, or all problems.
pub(super) fn validate(
    sources: &[ProviderSource<'_>],
    path: &Path,
    profile: Profile,
) -> Result<Vec<ProviderConfig>, Vec<ConfigProblem>> {
    if sources.is_empty() {
        return Err(vec![ConfigProblem {
            file: path.to_owned(),
            stage: ConfigStage::Validate,
            error_type: Some(FieldErrorType::Required),
            field: "providers".to_owned(),
            path: "providers".to_owned(),
            message: "at least one provider is required".to_owned(),
            hint: None,
            span: None,
        }]);
    }
    let mut problems = Vec::new();
    let mut providers = Vec::new();
    for source in sources {
        let mut checks = Checks { source, problems: &mut problems };
        providers.extend(checks.provider(&source.provider, profile));
    }
    if problems.is_empty() { Ok(providers) } else { Err(problems) }
}

/// The checks of one provider.
struct Checks<'a> {
    source: &'a ProviderSource<'a>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl Checks<'_> {
    /// Converts a provider. The result is discarded if any problem was reported.
    fn provider(&mut self, provider: &CredentialProvider, profile: Profile) -> Option<ProviderConfig> {
        self.name(&provider.name, profile);
        let wire_version = self.wire_version(&provider.api_version);
        let patterns = self.patterns(&provider.match_images, profile);
        let default_cache_duration = self.default_cache_duration(provider);
        let token = provider.token_attributes.as_ref().map(|attributes| self.token(attributes, wire_version));
        Some(ProviderConfig {
            name: provider.name.clone(),
            patterns,
            default_cache_duration: default_cache_duration?,
            wire_version: wire_version?,
            args: provider.args.clone(),
            env: provider
                .env
                .iter()
                .map(|variable| (variable.name.clone(), variable.value.clone()))
                .collect(),
            token: match token {
                Some(token) => Some(token?),
                None => None,
            },
        })
    }

    fn name(&mut self, name: &str, profile: Profile) {
        use FieldErrorType::Invalid;
        if name.contains('/') {
            self.report("name", Invalid, "provider name must not contain `/`");
        }
        if name.contains(' ') {
            self.report("name", Invalid, "provider name must not contain spaces");
        }
        if name == "." || name == ".." {
            self.report("name", Invalid, "provider name must not be `.` or `..`");
        }
        if name.is_empty() && profile == Profile::Hardened {
            // The kubelet accepts this here and later fails to execute the directory (I41).
            self.report("name", FieldErrorType::Required, "missing name of the executable");
        }
    }

    fn wire_version(&mut self, api_version: &str) -> Option<WireVersion> {
        let version = WireVersion::from_api_version(api_version);
        if api_version.is_empty() {
            let known = WireVersion::V1.api_version();
            self.report("apiVersion", FieldErrorType::Required, &format!("missing; set it to `{known}`"));
        } else if version.is_none() {
            let known = WireVersion::ALL.map(|version| format!("`{}`", version.api_version())).join(", ");
            self.report("apiVersion", FieldErrorType::NotSupported, &format!("must be one of {known}"));
        }
        version
    }

    fn patterns(&mut self, texts: &[String], profile: Profile) -> Vec<(String, ImagePattern)> {
        if texts.is_empty() {
            self.report("matchImages", FieldErrorType::Required, "at least one pattern is required");
        }
        let mut patterns = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            match ImagePattern::parse(text, profile) {
                Ok(pattern) => patterns.push((text.clone(), pattern)),
                Err(reason) => {
                    self.report_element("matchImages", at, FieldErrorType::Invalid, &reason.to_string());
                }
            }
        }
        patterns
    }

    fn default_cache_duration(&mut self, provider: &CredentialProvider) -> Option<Duration> {
        let field = "defaultCacheDuration";
        let Some(duration) = provider.default_cache_duration else {
            self.report(field, FieldErrorType::Required, "missing; set it to a duration such as `12h`");
            return None;
        };
        let duration = u64::try_from(duration.nanoseconds()).ok().map(Duration::from_nanos);
        if duration.is_none() {
            self.report(field, FieldErrorType::Invalid, "must not be negative");
        }
        duration
    }

    fn token(&mut self, attributes: &TokenAttributes, version: Option<WireVersion>) -> Option<TokenSettings> {
        if attributes.service_account_token_audience.is_empty() {
            self.report_token("serviceAccountTokenAudience", FieldErrorType::Required, "missing");
        }
        if attributes.require_service_account.is_none() {
            self.report_token(
                "requireServiceAccount",
                FieldErrorType::Required,
                "missing; set it to `true` or `false`",
            );
        }
        if version != Some(WireVersion::V1) {
            let message = format!("requires `apiVersion: {}`", WireVersion::V1.api_version());
            self.report("tokenAttributes", FieldErrorType::Forbidden, &message);
        }
        self.annotation_keys(attributes);
        let cache_type = self.cache_type(&attributes.cache_type);
        Some(TokenSettings {
            audience: attributes.service_account_token_audience.clone(),
            cache_type: cache_type?,
            require_service_account: attributes.require_service_account?,
            required_annotations: attributes.required_service_account_annotation_keys.clone(),
            optional_annotations: attributes.optional_service_account_annotation_keys.clone(),
        })
    }

    fn annotation_keys(&mut self, attributes: &TokenAttributes) {
        let (required_field, optional_field) =
            ("requiredServiceAccountAnnotationKeys", "optionalServiceAccountAnnotationKeys");
        let required = &attributes.required_service_account_annotation_keys;
        let optional = &attributes.optional_service_account_annotation_keys;
        if attributes.require_service_account == Some(false) && !required.is_empty() {
            let message = "requires `requireServiceAccount: true`";
            self.report_token(required_field, FieldErrorType::Forbidden, message);
        }
        let in_required = self.key_list(required_field, required);
        let in_optional = self.key_list(optional_field, optional);
        let both: Vec<&str> = in_required.intersection(&in_optional).copied().collect();
        if !both.is_empty() {
            let message =
                format!("annotation keys must not be both required and optional: {}", both.join(", "));
            self.report("tokenAttributes", FieldErrorType::Invalid, &message);
        }
    }

    fn key_list<'k>(&mut self, field: &str, keys: &'k [String]) -> BTreeSet<&'k str> {
        let mut seen = BTreeSet::new();
        for (at, key) in keys.iter().enumerate() {
            for reason in violated_name_rules(&key.to_lowercase()) {
                self.report_token_key(field, at, FieldErrorType::Invalid, reason);
            }
            if !seen.insert(key.as_str()) {
                self.report_token_key(field, at, FieldErrorType::Duplicate, "duplicate annotation key");
            }
        }
        seen
    }

    fn cache_type(&mut self, cache_type: &CacheType) -> Option<TokenCacheType> {
        match cache_type {
            CacheType::Token => Some(TokenCacheType::Token),
            CacheType::ServiceAccount => Some(TokenCacheType::ServiceAccount),
            CacheType::Unset => {
                self.report_token(
                    "cacheType",
                    FieldErrorType::Required,
                    "missing; set it to `ServiceAccount` or `Token`",
                );
                None
            }
            _ => {
                self.report_token(
                    "cacheType",
                    FieldErrorType::NotSupported,
                    "must be `ServiceAccount` or `Token`",
                );
                None
            }
        }
    }

    fn report(&mut self, field: &str, error_type: FieldErrorType, message: &str) {
        self.push(field, field, &[Step::Field(field)], error_type, message);
    }

    fn report_element(&mut self, field: &str, at: usize, error_type: FieldErrorType, message: &str) {
        let steps = [Step::Field(field), Step::Element(at)];
        self.push(field, &format!("{field}[{at}]"), &steps, error_type, message);
    }

    fn report_token(&mut self, field: &str, error_type: FieldErrorType, message: &str) {
        let whole = format!("tokenAttributes.{field}");
        self.push(&whole, &whole, &[Step::Field("tokenAttributes"), Step::Field(field)], error_type, message);
    }

    fn report_token_key(&mut self, field: &str, at: usize, error_type: FieldErrorType, message: &str) {
        let whole = format!("tokenAttributes.{field}");
        let steps = [Step::Field("tokenAttributes"), Step::Field(field), Step::Element(at)];
        self.push(&whole, &format!("{whole}[{at}]"), &steps, error_type, message);
    }

    fn push(
        &mut self,
        field: &str,
        path: &str,
        steps: &[Step<'_>],
        error_type: FieldErrorType,
        message: &str,
    ) {
        self.problems.push(ConfigProblem {
            file: self.source.file.to_owned(),
            stage: ConfigStage::Validate,
            error_type: Some(error_type),
            field: format!("providers.{field}"),
            path: self.source.path(path),
            message: message.to_owned(),
            hint: None,
            span: self.source.span(steps),
        });
    }
}

/// The rules for qualified names that a key violates.
// I59
fn violated_name_rules(key: &str) -> Vec<&'static str> {
    let mut violated = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, rest)) if rest.contains('/') => return vec!["an annotation key must have at most one `/`"],
        Some((prefix, name)) => {
            if prefix.is_empty() {
                violated.push("the prefix before `/` is empty");
            } else if !is_subdomain(prefix) {
                violated.push("the prefix before `/` is not a DNS subdomain");
            }
            name
        }
    };
    if name.is_empty() {
        violated.push("the name is empty");
    } else if name.len() > 63 {
        violated.push("the name is longer than 63 characters");
    }
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !name.bytes().all(inner) || !ends(name.bytes().next()) || !ends(name.bytes().next_back()) {
        violated.push("the name must consist of letters, digits, `-`, `_` and `.`, and start and end with a letter or digit");
    }
    violated
}

fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(plain) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
