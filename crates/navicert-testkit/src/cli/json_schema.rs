//! Validates JSON against a JSON Schema (draft 2020-12), as far as the schemas in docs/schemas use its keywords. A keyword that
//! is not known here is an error, so that no schema passes because part of it was ignored.
//!
//! Stricter than the draft in one respect: a member of an object that no keyword describes is an error. Readers have to accept
//! new members; a test has to notice that one is not documented.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

/// A schema with its definitions.
#[derive(Clone, Debug)]
pub struct JsonSchema(Value);

/// The members of an object that a schema describes.
type Described = BTreeSet<String>;

impl JsonSchema {
    /// A schema.
    pub fn new(schema: Value) -> Self {
        JsonSchema(schema)
    }

    /// Reads a schema from a file.
    ///
    /// # Panics
    /// If there is no such file, or it is not JSON.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read(path)
            .unwrap_or_else(|error| panic!("cannot read the schema {}: {error}", path.display()));
        let schema = serde_json::from_slice(&text);
        JsonSchema(schema.unwrap_or_else(|error| panic!("{} is not JSON: {error}", path.display())))
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The first difference, with its path.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.complete(&self.0, value, "$")
    }

    /// Validates a value, and that every member of an object is described.
    fn complete(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let described = self.validate(schema, value, path)?;
        let mut members = value.as_object().into_iter().flat_map(Map::keys);
        match members.find(|name| !described.contains(*name)) {
            Some(name) => Err(format!("{path}.{name}: is not in the schema")),
            None => Ok(()),
        }
    }

    fn validate(&self, schema: &Value, value: &Value, path: &str) -> Result<Described, String> {
        let all = || value.as_object().into_iter().flat_map(Map::keys).cloned().collect();
        let keywords = match schema {
            Value::Bool(true) => return Ok(all()),
            Value::Object(keywords) => keywords,
            _ => return Err(format!("{path}: no value is allowed here")),
        };
        let mut described = Described::new();
        let mut asserts = false;
        for (keyword, argument) in keywords {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "format" | "default" | "examples" => {
                    continue;
                }
                "$ref" => described.extend(self.validate(self.definition(argument)?, value, path)?),
                "type" => check_type(argument, value, path)?,
                "const" if value != argument => {
                    return Err(format!("{path}: expected {argument}, got {value}"));
                }
                "enum" if !list(argument).contains(value) => {
                    return Err(format!("{path}: expected one of {argument}, got {value}"));
                }
                "const" | "enum" => {}
                "minimum" if value.is_number() && value.as_f64() < argument.as_f64() => {
                    return Err(format!("{path}: {value} is less than {argument}"));
                }
                "maximum" if value.is_number() && value.as_f64() > argument.as_f64() => {
                    return Err(format!("{path}: {value} is more than {argument}"));
                }
                "minimum" | "maximum" => {}
                "required" => check_required(argument, value, path)?,
                "properties" => described.extend(self.properties(argument, value, path)?),
                "additionalProperties" => {
                    let known = keywords.get("properties").and_then(Value::as_object);
                    described.extend(self.other_properties(argument, known, value, path)?);
                }
                "items" => {
                    for (index, item) in list(value).iter().enumerate() {
                        self.complete(argument, item, &format!("{path}[{index}]"))?;
                    }
                }
                "allOf" => {
                    for schema in list(argument) {
                        described.extend(self.validate(schema, value, path)?);
                    }
                }
                "anyOf" | "oneOf" => {
                    let is_one = keyword == "oneOf";
                    described.extend(self.alternatives(list(argument), is_one, value, path)?);
                }
                other => return Err(format!("{path}: the validator does not know the keyword `{other}`")),
            }
            asserts = true;
        }
        // Without assertions any value is allowed, as with `true`.
        Ok(if asserts { described } else { all() })
    }

    fn definition(&self, reference: &Value) -> Result<&Value, String> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).unwrap_or_default();
        self.0.pointer(pointer).ok_or_else(|| format!("the schema has no definition {reference}"))
    }

    fn properties(&self, schemas: &Value, value: &Value, path: &str) -> Result<Described, String> {
        let mut described = Described::new();
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            if let Some(member) = value.get(name) {
                self.complete(schema, member, &format!("{path}.{name}"))?;
                described.insert(name.clone());
            }
        }
        Ok(described)
    }

    fn other_properties(
        &self,
        schema: &Value,
        known: Option<&Map<String, Value>>,
        value: &Value,
        path: &str,
    ) -> Result<Described, String> {
        let mut described = Described::new();
        for (name, member) in value.as_object().into_iter().flatten() {
            if known.is_none_or(|known| !known.contains_key(name)) {
                self.complete(schema, member, &format!("{path}.{name}"))?;
                described.insert(name.clone());
            }
        }
        Ok(described)
    }

    fn alternatives(
        &self,
        schemas: &[Value],
        is_one: bool,
        value: &Value,
        path: &str,
    ) -> Result<Described, String> {
        let results: Vec<_> = schemas.iter().map(|schema| self.validate(schema, value, path)).collect();
        let fitting = results.iter().filter(|result| result.is_ok()).count();
        if fitting == 0 {
            let why: Vec<String> = results.into_iter().filter_map(Result::err).collect();
            return Err(format!("{path}: no alternative fits: {}", why.join("; ")));
        }
        if is_one && fitting > 1 {
            return Err(format!("{path}: {fitting} alternatives fit, and exactly one has to"));
        }
        Ok(results.into_iter().flatten().flatten().collect())
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn check_type(expected: &Value, value: &Value, path: &str) -> Result<(), String> {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let fits = match expected {
        Value::String(name) => is(name),
        names => list(names).iter().filter_map(Value::as_str).any(is),
    };
    if fits { Ok(()) } else { Err(format!("{path}: expected {expected}, got {value}")) }
}

fn check_required(names: &Value, value: &Value, path: &str) -> Result<(), String> {
    let mut names = list(names).iter().filter_map(Value::as_str);
    match names.find(|name| value.is_object() && value.get(name).is_none()) {
        Some(name) => Err(format!("{path}.{name}: is missing")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(schema: Value, value: &Value) -> Option<String> {
        JsonSchema::new(schema).check(value).err()
    }

    #[test]
    fn every_keyword_can_fail() {
        for (schema, good, bad) in [
            (json!({"type": "integer"}), json!(1), json!(1.5)),
            (json!({"type": ["string", "null"]}), json!(null), json!(1)),
            (json!({"const": "a"}), json!("a"), json!("b")),
            (json!({"enum": ["a", "b"]}), json!("b"), json!("c")),
            (json!({"minimum": 0}), json!(0), json!(-1)),
            (json!({"minimum": 0}), json!(null), json!(-1)),
            (json!({"maximum": 9}), json!(9), json!(10)),
            (json!({"required": ["a"], "properties": {"a": true}}), json!({"a": 1}), json!({})),
            (json!({"properties": {"a": {"type": "string"}}}), json!({"a": "x"}), json!({"a": 1})),
            (json!({"additionalProperties": {"type": "string"}}), json!({"a": "x"}), json!({"a": 1})),
            (json!({"items": {"type": "string"}}), json!(["x"]), json!([1])),
            (json!({"allOf": [{"type": "string"}, {"const": "a"}]}), json!("a"), json!("b")),
            (json!({"anyOf": [{"const": 1}, {"const": 2}]}), json!(2), json!(3)),
            (json!({"oneOf": [{"type": "integer"}, {"minimum": 5}]}), json!(1), json!(7)),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}), json!(1), json!(2)),
            (json!(true), json!({"a": {"b": 1}}), json!(null)),
        ] {
            assert_eq!(problem(schema.clone(), &good), None, "{schema}");
            if schema != json!(true) {
                assert!(problem(schema.clone(), &bad).is_some(), "{schema}");
            }
        }
        assert!(problem(json!(false), &json!(1)).is_some());
        assert!(problem(json!({"pattern": "a"}), &json!("a")).unwrap().contains("`pattern`"));
    }

    #[test]
    fn undescribed_members_are_errors_also_behind_alternatives() {
        let schema = json!({
            "type": "object",
            "properties": {"id": true},
            "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": true}, "required": ["b"]}],
        });
        assert_eq!(problem(schema.clone(), &json!({"id": 1, "a": "x"})), None);
        let undescribed = problem(schema.clone(), &json!({"id": 1, "a": "x", "c": 1})).unwrap();
        assert!(undescribed.contains("$.c"), "{undescribed}");
        assert!(problem(schema, &json!({"id": 1})).is_some());
        let any = json!({"properties": {"value": {"description": "anything"}}});
        assert_eq!(problem(any, &json!({"value": {"x": [1]}})), None);
    }
}
