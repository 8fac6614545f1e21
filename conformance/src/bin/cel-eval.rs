//! Evaluates the expressions on standard input, one JSON object per line, like `navicert cel eval --jsonl`.

#![expect(clippy::print_stdout, reason = "results go to standard output")]

use navicert_cel::kubernetes::batch;
use serde_json::{Value, json};
use std::io::BufRead as _;

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let response = match serde_json::from_str::<Value>(&line?) {
            Ok(input) => {
                let mut response = batch::answer(&input);
                if let (Some(members), Some(id)) = (response.as_object_mut(), input.get("id")) {
                    members.insert("id".to_owned(), id.clone());
                }
                response
            }
            Err(error) => json!({ "fault": error.to_string() }),
        };
        println!("{response}");
    }
    Ok(())
}
