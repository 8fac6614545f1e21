//! Checks what `navicert … -o json` prints against the schemas in docs/schemas/output. Every command of a transcript is checked.

use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value};

use crate::cli::json_schema::JsonSchema;

/// The schemas of outputs.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/output")
}

/// Checks the output of a command line (without the program's name), if it is JSON that has a schema. Returns the name of the
/// schema.
///
/// # Errors
/// The output is not JSON, or does not match its schema.
pub fn check(arguments: &[String], stdout: &[u8]) -> Result<Option<String>, String> {
    let Some(name) = schema_name(arguments) else { return Ok(None) };
    // A server that was stopped before it listened, a reader that closed the pipe.
    if stdout.is_empty() {
        return Ok(None);
    }
    let mut checked = name.clone();
    for value in Deserializer::from_slice(stdout).into_iter::<Value>() {
        let value = value.map_err(|error| format!("the output of `{name}` is not JSON: {error}"))?;
        let is_error = value.get("error").is_some_and(Value::is_object);
        if is_error {
            "error".clone_into(&mut checked);
        }
        check_value(&checked, &value)?;
    }
    Ok(Some(checked))
}

/// Checks many values against the schema with this name.
///
/// # Panics
/// If there is no value, or one does not match.
pub fn check_all<'v>(name: &str, values: impl IntoIterator<Item = &'v Value>) {
    let schema = JsonSchema::read(&directory().join(format!("{name}.json")));
    let mut count = 0;
    for value in values {
        count += 1;
        schema
            .check(value)
            .unwrap_or_else(|problem| panic!("docs/schemas/output/{name}.json: {problem}: {value}"));
    }
    assert!(count > 0, "no value to check against {name}.json");
}

/// Checks one value against the schema with this name.
///
/// # Errors
/// The value does not match.
pub fn check_value(name: &str, value: &Value) -> Result<(), String> {
    let schema = JsonSchema::read(&directory().join(format!("{name}.json")));
    schema.check(value).map_err(|problem| format!("docs/schemas/output/{name}.json: {problem}"))
}

/// The schema of a command line: of its verb, if the verb has one and JSON is requested.
fn schema_name(arguments: &[String]) -> Option<String> {
    let arguments: Vec<&str> =
        arguments.iter().map(String::as_str).take_while(|argument| *argument != "--").collect();
    let arguments = without_plugin(&arguments);
    let is_batch = arguments.contains(&"--jsonl");
    let is_json = arguments.windows(2).any(|pair| matches!(pair, ["-o" | "--output", "json"]))
        || arguments.iter().any(|argument| matches!(*argument, "-ojson" | "-o=json" | "--output=json"));
    let is_yaml = arguments.iter().any(|argument| argument.starts_with("--print-") || *argument == "--help");
    if !(is_json || is_batch) || is_yaml {
        return None;
    }
    let mut words = arguments.iter().filter(|word| !word.starts_with('-') && **word != "json");
    let verb = words.next()?;
    let inner = words.next().copied().unwrap_or_default();
    let exists = |name: &String| directory().join(format!("{name}.json")).is_file();
    let names = match (*verb, is_batch) {
        ("serve", _) if arguments.contains(&"--check") => ["serve-check".to_owned(), String::new()],
        (verb, true) => [format!("{verb}-{inner}-jsonl"), format!("{verb}-jsonl")],
        ("help", false) if inner == "topics" => ["help-topics".to_owned(), String::new()],
        (verb, false) => [format!("{verb}-{inner}"), verb.to_owned()],
    };
    names.into_iter().find(exists)
}

/// The arguments before the command that `exec-plugin check` runs: what follows is not navicert's.
fn without_plugin<'a, 'b>(arguments: &'a [&'b str]) -> &'a [&'b str] {
    let Some(verb) = arguments.windows(2).position(|pair| pair == ["exec-plugin", "check"]) else {
        return arguments;
    };
    let has_value = |option: &str| matches!(option, "-o" | "--output" | "--limit" | "--api-version");
    let behind = arguments.windows(2).enumerate().skip(verb + 1);
    let mut words = behind.filter(|(_, pair)| !pair[1].starts_with('-') && !has_value(pair[0]));
    words.next().map_or(arguments, |(index, _)| &arguments[..index + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(line: &str) -> Option<String> {
        schema_name(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn schema_is_that_of_the_verb() {
        for (line, expected) in [
            ("authn check a.yaml -o json", Some("authn-check")),
            ("-o json exec-plugin check sh", Some("exec-plugin-check")),
            ("authn eval --jsonl", Some("authn-eval-jsonl")),
            ("request-info --jsonl", Some("request-info-jsonl")),
            ("whoami --output=json", Some("whoami")),
            ("serve --check -o json", Some("serve-check")),
            ("serve proxy -o json --check", Some("serve-check")),
            ("serve webhook -o json", Some("serve")),
            ("help -o json topics", Some("help-topics")),
            ("help doctor -o json", Some("help")),
            ("exec-plugin check --limit 3 -o json sh", Some("exec-plugin-check")),
            ("exec-plugin check sh failing.sh -o json", None),
            ("exec-plugin check -- sh -o json", None),
            ("serve webhook --print-kubeconfig -o json", None),
            ("run -o json", None),
            ("authn check a.yaml", None),
        ] {
            assert_eq!(name(line).as_deref(), expected, "{line}");
        }
    }
}
