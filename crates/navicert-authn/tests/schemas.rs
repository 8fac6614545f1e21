//! The JSON Schemas in docs/ match the decoders: every member of a schema is decoded, every other is rejected.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use navicert_authn::config::NavicertConfiguration;
use navicert_authn::revocation::RevocationList;
use serde_json::{Map, Value, json};

/// A document with every member of a schema.
fn example(schema: &Value, definitions: &Value) -> Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap();
        return example(definitions.get(name).unwrap(), definitions);
    }
    if let Some(value) = schema.get("const").or_else(|| schema.get("enum").and_then(|words| words.get(0))) {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str).unwrap() {
        "object" => {
            let none = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
            let member = |(name, schema): (&String, &Value)| (name.clone(), example(schema, definitions));
            Value::Object(properties.iter().map(member).collect())
        }
        "array" => json!([example(schema.get("items").unwrap(), definitions)]),
        "boolean" => json!(true),
        _ if schema.get("format").is_some() => json!("2026-11-16T00:00:00Z"),
        _ => json!("text"),
    }
}

/// Every object in a document, by its JSON pointer.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(at.to_owned());
            for (name, value) in members {
                objects(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                objects(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn holds(schema: &str, parse: fn(&[u8]) -> Result<(), String>) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let definitions = schema.get("$defs").unwrap();
    let whole = example(&schema, definitions);
    parse(whole.to_string().as_bytes()).unwrap();
    let mut places = Vec::new();
    objects(&whole, "", &mut places);
    // Server settings are not decoded here.
    for pointer in places.iter().filter(|pointer| !pointer.starts_with("/servers")) {
        let mut more = whole.clone();
        more.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert("surplus".to_owned(), json!(true));
        let wrong = parse(more.to_string().as_bytes()).unwrap_err();
        assert!(wrong.contains("surplus"), "{pointer}: {wrong}");
    }
    for name in schema.get("required").and_then(Value::as_array).unwrap() {
        let mut less = whole.clone();
        less.as_object_mut().unwrap().remove(name.as_str().unwrap());
        assert!(parse(less.to_string().as_bytes()).is_err(), "{name}");
    }
}

#[test]
fn navicert_configuration_schema_matches_the_decoder() {
    holds(include_str!("../../../docs/schemas/navicert-configuration.json"), |text| {
        NavicertConfiguration::parse(text).map(drop).map_err(|wrong| wrong.to_string())
    });
}

#[test]
fn revocation_list_schema_matches_the_decoder() {
    holds(include_str!("../../../docs/schemas/revocation-list.json"), |text| {
        RevocationList::parse(text).map(drop).map_err(|wrong| wrong.to_string())
    });
}
