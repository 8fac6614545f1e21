//! One question per line, one answer per line: what the `--jsonl` forms share.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Answers every line of standard input; a line that is no question is answered with its fault.
pub(super) fn answer_each(
    answer: fn(&Value) -> Result<Value, String>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("cannot read standard input: {error}")))?;
        if !line.trim_ascii().is_empty() {
            output.line(&answer_line(&line, answer))?;
        }
    }
    Ok(Exit::Done)
}

fn answer_line(line: &[u8], answer: fn(&Value) -> Result<Value, String>) -> Value {
    let question: Value = match serde_json::from_slice(line) {
        Ok(question) => question,
        // What serde_json says may quote the line, and the line may hold secrets.
        Err(error) => return json!({"id": null, "fault": format!("not JSON at column {}", error.column())}),
    };
    let id = question.get("id").cloned().unwrap_or_default();
    let mut answer = answer(&question).unwrap_or_else(|fault| json!({ "fault": fault }));
    if let Some(members) = answer.as_object_mut() {
        members.insert("id".to_owned(), id);
    }
    answer
}

/// A member that has to be text.
pub(super) fn text<'a>(question: &'a Value, name: &str) -> Result<&'a str, String> {
    question.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` has to be a string"))
}
