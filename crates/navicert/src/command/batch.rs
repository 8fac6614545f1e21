//! Shared by the `--jsonl` forms: one input line, one result line.

use std::io::{self, BufRead as _};

use navicert_types::report::BatchResponse;
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints one result for every line of standard input; the result of an invalid line is a `fault`.
pub(super) fn process_lines<T: Serialize>(
    process: impl Fn(&Value) -> Result<T, String>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if !line.trim_ascii().is_empty() {
            output.line(&BatchResponse::process(&line, &process))?;
        }
    }
    Ok(Exit::Done)
}
