//! Shared by the `--jsonl` forms: one input line, one result line.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints one result for every line of standard input; the result of an invalid line is a `fault`.
pub(super) fn process_lines(
    answer: fn(&Value) -> Result<Value, String>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if !line.trim_ascii().is_empty() {
            output.line(&process_line(&line, answer))?;
        }
    }
    Ok(Exit::Done)
}

fn process_line(line: &[u8], answer: fn(&Value) -> Result<Value, String>) -> Value {
    let question: Value = match serde_json::from_slice(line) {
        Ok(question) => question,
        // serde_json's message may quote the line, which may hold secrets.
        Err(error) => {
            return json!({"id": null, "fault": format!("invalid JSON at column {}", error.column())});
        }
    };
    let id = question.get("id").cloned().unwrap_or_default();
    let mut answer = answer(&question).unwrap_or_else(|fault| json!({ "fault": fault }));
    if let Some(members) = answer.as_object_mut() {
        members.insert("id".to_owned(), id);
    }
    answer
}

/// A required string member.
pub(super) fn text<'a>(question: &'a Value, name: &str) -> Result<&'a str, String> {
    question.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` must be a string"))
}
