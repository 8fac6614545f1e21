//! Shared by the `--jsonl` forms: one input line, one result line.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints one result for every line of standard input; the result of an invalid line is a `fault`.
pub(in crate::command) fn process_lines(
    process: fn(&Value) -> Result<Value, String>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if !line.trim_ascii().is_empty() {
            output.line(&process_line(&line, process))?;
        }
    }
    Ok(Exit::Done)
}

fn process_line(line: &[u8], process: fn(&Value) -> Result<Value, String>) -> Value {
    let request: Value = match serde_json::from_slice(line) {
        Ok(request) => request,
        // serde_json's message may quote the line, which may hold secrets.
        Err(error) => {
            return json!({"id": null, "fault": format!("invalid JSON at column {}", error.column())});
        }
    };
    let id = request.get("id").cloned().unwrap_or_default();
    let mut response = process(&request).unwrap_or_else(|fault| json!({ "fault": fault }));
    if let Some(members) = response.as_object_mut() {
        members.insert("id".to_owned(), id);
    }
    response
}

/// A required string member.
pub(in crate::command) fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str, String> {
    request.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` must be a string"))
}
