//! Compares decisions about images with vectors recorded from the kubelet's code.

#![expect(clippy::unwrap_used, reason = "test helpers: a vector without its members is a broken suite")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use navicert_image::config::{ConfigFile, ConfigStage, ImageConfig};
use navicert_image::docker_config::read_config_json;
use navicert_image::response::Response;
use navicert_image::{ImagePattern, Keyring, Location, Profile, RegistryCredential};
use navicert_testkit::k8s::vectors::{Vector, run_suite};
use navicert_types::time::Duration;
use serde_json::{Value, json};

#[test]
fn image_match_vectors_agree() {
    // I61–I80, and I267: profile `kube` is compared
    run_suite("image-match (library)", "image-match.jsonl", |vector| {
        let pattern = ImagePattern::parse(text(&vector.input, "pattern"), Profile::Kube);
        let image = Location::parse(text(&vector.input, "image").as_bytes());
        let is_error = pattern.is_err() || image.is_err();
        let matches = pattern.is_ok_and(|pattern| image.is_ok_and(|image| pattern.matches(&image)));
        agree("match", &vector.expect["match"], &json!(matches))?;
        agree("error", &json!(vector.expect.get("error").is_some()), &json!(is_error))
    });
}

#[test]
fn image_keyring_vectors_agree() {
    // I132–I146
    run_suite("image-keyring (library)", "image-keyring.jsonl", |vector| {
        let found = keyring(vector).map(|keyring| {
            let found = keyring.lookup(text(&vector.input, "image")).into_iter();
            found
                .map(|found| json!({"username": found.username, "password": found.password.expose()}))
                .collect::<Vec<_>>()
        });
        agree("error", &json!(vector.expect.get("error").is_some()), &json!(found.is_none()))?;
        agree("credentials", &vector.expect["credentials"], &json!(found.unwrap_or_default()))
    });
}

fn keyring(vector: &Vector) -> Option<Keyring> {
    if let Some(config) = vector.input.get("docker_config").and_then(Value::as_str) {
        return read_config_json(config.as_bytes()).ok().map(|config| Keyring::new(config, Profile::Kube));
    }
    let auths = vector.input.get("auths").and_then(Value::as_object).unwrap();
    let credential =
        |entry: &Value| RegistryCredential::new(text(entry, "username"), text(entry, "password").to_owned());
    Some(Keyring::new(auths.iter().map(|(key, entry)| (key, credential(entry))), Profile::Kube))
}

#[test]
fn image_response_vectors_agree() {
    // I101–I108
    run_suite("image-response (library)", "image-response.jsonl", |vector| {
        let version = text(&vector.input, "apiVersion");
        let response = Response::decode_as(text(&vector.input, "response").as_bytes(), version);
        agree("ok", &vector.expect["ok"], &json!(response.is_ok()))?;
        match response {
            Err(error) => agree("stage", &vector.expect["stage"], &json!(error.stage().as_str())),
            Ok(response) => {
                let auth = response.auth.iter().map(|(key, found)| {
                    (key.clone(), json!({"username": found.username, "password": found.password.expose()}))
                });
                let expected: Option<Duration> =
                    vector.expect["cacheDuration"].as_str().map(|text| text.parse().unwrap());
                agree(
                    "cacheKeyType",
                    &vector.expect["cacheKeyType"],
                    &json!(response.cache_key_type.as_str()),
                )?;
                agree("cacheDuration", &json!(expected), &json!(response.cache_duration))?;
                agree("auth", &vector.expect["auth"], &Value::Object(auth.collect()))
            }
        }
    });
}

#[test]
fn image_config_vectors_agree() {
    // I20–I60
    run_suite("image-config (library)", "image-config.jsonl", |vector| {
        let file =
            ConfigFile { path: PathBuf::from("config.yaml"), text: text(&vector.input, "config").into() };
        let decoded = ImageConfig::decode(&[file], Profile::Kube);
        agree("valid", &vector.expect["valid"], &json!(decoded.is_ok()))?;
        let Err(errors) = decoded else { return Ok(()) };
        let stage = errors.problems()[0].stage;
        agree("stage", &vector.expect["stage"], &json!(stage.as_str()))?;
        if stage != ConfigStage::Validate {
            return Ok(());
        }
        let expected = vector.expect["errors"].as_array().unwrap().iter();
        let expected: BTreeSet<_> =
            expected.map(|error| (text(error, "type"), text(error, "field"))).collect();
        let found = errors.problems().iter();
        let found: BTreeSet<_> =
            found.map(|found| (found.error_type.unwrap().as_str(), &*found.field)).collect();
        agree("errors", &json!(expected), &json!(found))
    });
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

fn agree(what: &str, expected: &Value, found: &Value) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what} should be {expected}, is {found}")) }
}
