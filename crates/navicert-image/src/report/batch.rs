//! One line of `image match|keyring|response|check --jsonl` and its result, in the format of the test vectors. Passwords are
//! shown: the input lines contain them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use navicert_types::error_chain;
use navicert_types::report::string_member;
use serde::Serialize;
use serde_json::Value;

use super::KeyringCredential;
use crate::cache_key::CacheKeyType;
use crate::config::{ConfigFile, ConfigProblem, ConfigStage, FieldErrorType, ImageConfig};
use crate::docker_config::read_config_json;
use crate::response::{Response, ResponseStage};
use crate::{ImagePattern, Keyring, Location, Profile, RegistryCredential};

/// The result of a line of `image match`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchResult {
    /// Whether the pattern matches.
    #[serde(rename = "match")]
    pub matches: bool,
    /// Why pattern or image is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a line of `image keyring`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyringResult {
    /// The credentials, in the order they are tried.
    pub credentials: Vec<KeyringCredential>,
    /// Why the docker configuration is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a line of `image response`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ResponseResult {
    /// A kubelet accepts the response.
    Accepted {
        /// `true`.
        ok: bool,
        /// The scope of the cached response.
        #[serde(rename = "cacheKeyType")]
        cache_key_type: CacheKeyType,
        /// The cache duration; `null`: as configured.
        #[serde(rename = "cacheDuration")]
        cache_duration: Option<String>,
        /// The credentials by key.
        auth: BTreeMap<String, KeyringCredential>,
    },
    /// A kubelet rejects the response.
    Rejected {
        /// `false`.
        ok: bool,
        /// The stage at which it does.
        stage: ResponseStage,
        /// Why.
        error: String,
    },
}

/// The result of a line of `image check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckResult {
    /// Whether the configuration is valid.
    pub valid: bool,
    /// The stage that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<ConfigStage>,
    /// The errors of single fields.
    pub errors: Vec<FieldError>,
    /// Every error as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// Kubernetes' error type.
    #[serde(rename = "type")]
    pub error_type: FieldErrorType,
    /// The kubelet's field path, without indexes.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
    /// The field path with indexes.
    pub path: String,
}

/// `{"pattern", "image"}`
///
/// # Errors
/// The line is not an input of this kind.
pub fn match_line(request: &Value, profile: Profile) -> Result<MatchResult, String> {
    let pattern = ImagePattern::parse(string_member(request, "pattern")?, profile);
    let image = Location::parse(string_member(request, "image")?.as_bytes());
    let invalid = |error: String| MatchResult { matches: false, error: Some(error) };
    Ok(match (pattern, image) {
        (Ok(pattern), Ok(image)) => MatchResult { matches: pattern.matches(&image), error: None },
        (Err(error), _) => invalid(format!("pattern: {error}")),
        (_, Err(error)) => invalid(format!("image: {error}")),
    })
}

/// `{"image", "auths"|"docker_config"}`
///
/// # Errors
/// The line is not an input of this kind.
pub fn keyring_line(request: &Value, profile: Profile) -> Result<KeyringResult, String> {
    let image = string_member(request, "image")?;
    let keyring = if let Some(config) = request.get("docker_config").and_then(Value::as_str) {
        match read_config_json(config.as_bytes()) {
            Ok(config) => Keyring::new(config, profile),
            Err(error) => {
                return Ok(KeyringResult { credentials: Vec::new(), error: Some(error_chain(&error)) });
            }
        }
    } else {
        let auths = request.get("auths").and_then(Value::as_object).ok_or("`auths` must be an object")?;
        Keyring::new(auths.iter().map(|(key, entry)| (key, credential(entry))), profile)
    };
    let found = keyring.lookup(image).into_iter();
    let credentials = found.map(|credential| KeyringCredential::new(credential, true)).collect();
    Ok(KeyringResult { credentials, error: None })
}

/// `{"apiVersion", "response"}`
///
/// # Errors
/// The line is not an input of this kind.
pub fn response_line(request: &Value) -> Result<ResponseResult, String> {
    let api_version = string_member(request, "apiVersion")?;
    Ok(match Response::decode_as(string_member(request, "response")?.as_bytes(), api_version) {
        Ok(response) => ResponseResult::Accepted {
            ok: true,
            cache_key_type: response.cache_key_type,
            cache_duration: response.cache_duration.map(|duration| duration.to_string()),
            auth: response
                .auth
                .iter()
                .map(|(key, found)| (key.clone(), KeyringCredential::new(found, true)))
                .collect(),
        },
        Err(error) => {
            ResponseResult::Rejected { ok: false, stage: error.stage(), error: error_chain(&error) }
        }
    })
}

/// `{"config"}`
///
/// # Errors
/// The line is not an input of this kind.
pub fn check_line(request: &Value, profile: Profile) -> Result<CheckResult, String> {
    let text = string_member(request, "config")?.into();
    let file = ConfigFile { path: PathBuf::from("config"), text };
    let Err(errors) = ImageConfig::decode(&[file], profile) else {
        return Ok(CheckResult { valid: true, stage: None, errors: Vec::new(), messages: Vec::new() });
    };
    let problems = errors.problems();
    let field_error = |problem: &ConfigProblem| {
        Some(FieldError {
            error_type: problem.error_type?,
            field: problem.field.clone(),
            detail: problem.message.clone(),
            path: problem.path.clone(),
        })
    };
    Ok(CheckResult {
        valid: false,
        stage: Some(problems.first().map_or(ConfigStage::Decode, |problem| problem.stage)),
        errors: problems.iter().filter_map(field_error).collect(),
        messages: problems.iter().map(ToString::to_string).collect(),
    })
}

fn credential(entry: &Value) -> RegistryCredential {
    let member = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    RegistryCredential::new(member("username"), member("password"))
}
