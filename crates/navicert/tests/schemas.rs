//! The JSON Schemas in docs/ say what the readers take: every property of theirs is a field, and no field is missing.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::path::Path;
use std::time::Duration;

use navicert_authn::config::NavicertConfiguration;
use navicert_server::ServerLimits;
use navicert_server::proxy;
use navicert_server::settings::ServerSettings;
use navicert_server::webhook;
use navicert_types::authentication_test::AuthenticationTest;
use serde_json::{Map, Value, json};

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Something that a property may be.
fn sample(schema: &Value, definitions: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return sample(&definitions[name.rsplit('/').next().unwrap()], definitions);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    if let Some(example) = schema["examples"].get(0) {
        return example.clone();
    }
    match schema["type"].as_str() {
        Some("integer") => schema["default"].clone(),
        Some("boolean") => json!(true),
        Some("string") if schema["format"] == "date-time" => json!("2027-01-01T00:00:00Z"),
        Some("string") => json!("x"),
        Some("array") => json!([sample(&schema["items"], definitions)]),
        Some("object") if schema["properties"].is_object() => {
            // Of alternatives the first.
            let one = |name: &str| match (schema["oneOf"].as_array(), schema["maxProperties"].as_u64()) {
                (Some(_), _) => !["token", "tokenFile"].contains(&name),
                (_, Some(1)) => name == "user",
                _ => true,
            };
            let properties = schema["properties"].as_object().unwrap().iter();
            let members = properties.filter(|(name, _)| one(name));
            let members = members.map(|(name, schema)| (name.clone(), sample(schema, definitions)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        _ => json!({}),
    }
}

#[test]
fn suite_schema_matches_the_parser() {
    let schema = schema("authentication-test.json");
    let definitions = &schema["$defs"];
    let whole = sample(&schema, definitions);
    AuthenticationTest::parse(whole.to_string().as_bytes()).unwrap();
    for (name, pointer) in [("rejected", "rejection"), ("noOpinion", "")] {
        let mut other = whole.clone();
        let value = if pointer.is_empty() { json!(true) } else { sample(&definitions[pointer], definitions) };
        other["cases"][0]["expect"] = json!({name: value});
        AuthenticationTest::parse(other.to_string().as_bytes()).unwrap();
    }
    for given in ["token", "tokenFile"] {
        let mut other = whole.clone();
        let case = other["cases"][0].as_object_mut().unwrap();
        case.remove("claims");
        case.insert(given.to_owned(), json!("x"));
        AuthenticationTest::parse(other.to_string().as_bytes()).unwrap();
    }
    // Nothing else is read.
    for pointer in ["", "/cases/0", "/cases/0/expect", "/cases/0/expect/user"] {
        let mut other = whole.clone();
        other.pointer_mut(pointer).unwrap()["zz"] = json!(1);
        let wrong = AuthenticationTest::parse(other.to_string().as_bytes()).unwrap_err().to_string();
        assert!(wrong.contains("unknown field"), "{pointer}: {wrong}");
    }
}

#[test]
fn server_schema_matches_the_parser() {
    let schema = schema("navicert-configuration.json");
    let definitions = &schema["$defs"];
    let mut servers = sample(&definitions["servers"], definitions);
    servers["proxy"]["mode"] = json!("requestHeader"); // so that its headers have a meaning
    let parse = |servers: &Value| {
        let whole =
            json!({"apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "servers": servers});
        let read = NavicertConfiguration::parse(whole.to_string().as_bytes()).unwrap();
        ServerSettings::parse(&read.servers.unwrap()).map_err(|wrong| wrong.to_string())
    };
    let read = parse(&servers).unwrap();
    assert_eq!(
        read.webhook,
        webhook::WebhookSettings {
            server_audiences: vec!["x".into()],
            expose_errors: true,
            timeout: Duration::from_secs(90),
            body_timeout: Duration::from_secs(90),
            ..Default::default()
        }
    );
    assert_eq!(read.limits.apply_to(ServerLimits::default()).http2_streams, 250);
    assert_eq!(read.proxy.max_stream_age, proxy::settings::MaxStreamAge::TokenExpiry);
    assert!(
        read.proxy.proxy_protocol && read.proxy.allowed_names == proxy::identity_headers::AllowedNames::ALL
    );
    for pointer in
        ["", "/limits", "/webhook", "/proxy", "/proxy/requestHeaders", "/proxy/allowedNames", "/confinement"]
    {
        let mut other = servers.clone();
        other.pointer_mut(pointer).unwrap()["zz"] = json!(1);
        let wrong = parse(&other).unwrap_err();
        assert!(wrong.contains("unknown field"), "{pointer}: {wrong}");
    }
}
