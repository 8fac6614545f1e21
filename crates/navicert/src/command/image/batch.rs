//! `--jsonl`: one input line, one result line, in the format of the test vectors.

use std::io::{self, BufRead};
use std::path::PathBuf;

use navicert_image::config::{ConfigFile, ConfigStage, FieldErrorType, ImageConfig};
use navicert_image::docker_config::read_config_json;
use navicert_image::response::Response;
use navicert_image::{ImagePattern, Keyring, Location, Profile, RegistryCredential};
use navicert_types::error_chain;
use serde_json::{Map, Value, json};

use super::profile;
use crate::exit::Exit;
use crate::output::{Failure, Output};

type ProfileFlag = Option<crate::args::Profile>;

/// `image match --jsonl`
pub(super) fn matches(named: ProfileFlag, output: &mut Output) -> Result<Exit, Failure> {
    let profile = profile(named, Profile::Kube);
    each_line(output, |request| {
        let pattern = ImagePattern::parse(text(request, "pattern")?, profile);
        let image = Location::parse(text(request, "image")?.as_bytes());
        Ok(match (pattern, image) {
            (Ok(pattern), Ok(image)) => json!({"match": pattern.matches(&image)}),
            (Err(error), _) => json!({"match": false, "error": format!("pattern: {error}")}),
            (_, Err(error)) => json!({"match": false, "error": format!("image: {error}")}),
        })
    })
}

/// `image keyring --jsonl`
pub(super) fn keyring(named: ProfileFlag, output: &mut Output) -> Result<Exit, Failure> {
    let profile = profile(named, Profile::Kube);
    each_line(output, |request| {
        let image = text(request, "image")?;
        let keyring = if let Some(config) = request.get("docker_config").and_then(Value::as_str) {
            match read_config_json(config.as_bytes()) {
                Ok(config) => Keyring::new(config, profile),
                Err(error) => return Ok(json!({"credentials": [], "error": error_chain(&error)})),
            }
        } else {
            let auths = request.get("auths").and_then(Value::as_object).ok_or("`auths` must be an object")?;
            Keyring::new(auths.iter().map(|(key, entry)| (key, credential(entry))), profile)
        };
        let found = keyring.lookup(image).into_iter().map(credential_json);
        Ok(json!({"credentials": found.collect::<Vec<_>>()}))
    })
}

/// `image response --jsonl`
pub(super) fn response(output: &mut Output) -> Result<Exit, Failure> {
    each_line(output, |request| {
        let api_version = text(request, "apiVersion")?;
        Ok(match Response::decode_as(text(request, "response")?.as_bytes(), api_version) {
            Ok(response) => json!({
                "ok": true,
                "cacheKeyType": response.cache_key_type.as_str(),
                "cacheDuration": response.cache_duration.map(|duration| duration.to_string()),
                "auth": response.auth.iter().map(|(key, found)| (key.clone(), credential_json(found))).collect::<Map<_, _>>(),
            }),
            Err(error) => json!({"ok": false, "stage": error.stage().as_str(), "error": error_chain(&error)}),
        })
    })
}

/// `image check --jsonl`
pub(super) fn check(named: ProfileFlag, output: &mut Output) -> Result<Exit, Failure> {
    let profile = profile(named, Profile::Kube);
    each_line(output, |request| {
        let file = ConfigFile { path: PathBuf::from("config"), text: text(request, "config")?.into() };
        let Err(errors) = ImageConfig::decode(&[file], profile) else {
            return Ok(json!({"valid": true, "errors": []}));
        };
        let stage = errors.problems().first().map_or(ConfigStage::Decode, |problem| problem.stage);
        let of_fields = errors.problems().iter().filter(|problem| problem.error_type.is_some());
        let fields = of_fields.map(|problem| {
            json!({
                "type": problem.error_type.map(FieldErrorType::as_str),
                "field": problem.field,
                "detail": problem.message,
                "path": problem.path,
            })
        });
        let messages: Vec<String> = errors.problems().iter().map(ToString::to_string).collect();
        Ok(
            json!({"valid": false, "stage": stage.as_str(), "errors": fields.collect::<Vec<_>>(), "messages": messages}),
        )
    })
}

/// Prints one result per input line; the result of an invalid line is a `fault`.
fn each_line(
    output: &mut Output,
    process: impl Fn(&Value) -> Result<Value, String>,
) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (id, response) = match serde_json::from_slice::<Value>(&line) {
            Ok(request) => (request.get("id").cloned().unwrap_or_default(), process(&request)),
            // serde_json's message may quote the line, which may hold secrets.
            Err(error) => (Value::Null, Err(format!("invalid JSON at column {}", error.column()))),
        };
        let mut response = response.unwrap_or_else(|fault| json!({"fault": fault}));
        if let Some(members) = response.as_object_mut() {
            members.insert("id".to_owned(), id);
        }
        output.line(&response)?;
    }
    Ok(Exit::Done)
}

fn text<'a>(request: &'a Value, member: &str) -> Result<&'a str, String> {
    request.get(member).and_then(Value::as_str).ok_or_else(|| format!("`{member}` must be a string"))
}

fn credential(entry: &Value) -> RegistryCredential {
    let member = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    RegistryCredential::new(member("username"), member("password"))
}

fn credential_json(credential: &RegistryCredential) -> Value {
    json!({"username": credential.username, "password": credential.password.expose()})
}
