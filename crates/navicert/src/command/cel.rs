//! `navicert cel check|eval`: compiles and evaluates expressions as kube-apiserver does.

mod eval;

use std::io::{self, BufRead, Read};
use std::path::Path;

use navicert_cel::kubernetes::{self, batch};
use navicert_cel::{CompileError, Environment, EnvironmentBuilder, Library, Program};
use serde_json::{Value, json};

use crate::args::cel::{CelVerb, CheckArgs, LanguageArgs, Subject};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(verb: &CelVerb, output: &mut Output) -> Result<Exit, Failure> {
    match verb {
        CelVerb::Check(args) => check(args, output),
        CelVerb::Eval(args) if args.jsonl => process_lines(output),
        CelVerb::Eval(args) => eval::run(args, output),
    }
}

/// Compiles the expression and prints its type.
fn check(args: &CheckArgs, output: &mut Output) -> Result<Exit, Failure> {
    let text = expression(&args.expression)?;
    let environment = subject_environment(args.subject, &args.language)?;
    match compile(&environment, &text, args.rule) {
        Ok(program) if output.is_json() => {
            output.json(&json!({"compiled": true, "type": program.result_type()}))?;
            Ok(Exit::Done)
        }
        Ok(program) => {
            output.text(&format!("{}\n", program.result_type()))?;
            Ok(Exit::Done)
        }
        Err(error) => report_compile_error(&error, output),
    }
}

/// Prints the compile errors of an expression.
fn report_compile_error(error: &CompileError, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        let complaints = error.diagnostics.iter().map(|diagnostic| {
            json!({
                "message": diagnostic.message,
                "line": diagnostic.line,
                "column": diagnostic.column,
                "hint": diagnostic.hint,
            })
        });
        output.json(&json!({"compiled": false, "errors": complaints.collect::<Vec<_>>()}))?;
    } else {
        output.note(&error.to_string());
    }
    Ok(Exit::No)
}

/// Processes a batch: one input line, one result line.
fn process_lines(output: &mut Output) -> Result<Exit, Failure> {
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::bad_input(format!("failed to read standard input: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        output.line(&process_line(&line))?;
    }
    Ok(Exit::Done)
}

fn process_line(line: &[u8]) -> Value {
    let request: Value = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            return json!({"id": null, "fault": format!("invalid JSON at column {}", error.column())});
        }
    };
    let mut response = batch::answer(&request);
    if let Some(members) = response.as_object_mut() {
        members.insert("id".to_owned(), request.get("id").cloned().unwrap_or_default());
    }
    response
}

fn compile(environment: &Environment, text: &str, rule: bool) -> Result<Program, CompileError> {
    if rule { environment.compile_rule(text) } else { environment.compile(text) }
}

/// The environment of one of the two subjects of structured authentication.
fn subject_environment(subject: Subject, language: &LanguageArgs) -> Result<Environment, Failure> {
    match (subject, language.extended) {
        (Subject::Claims, false) => Ok(kubernetes::claims_environment()),
        (Subject::User, false) => Ok(kubernetes::user_environment()),
        (Subject::Claims, true) => built(extended(kubernetes::claims_builder())),
        (Subject::User, true) => built(extended(kubernetes::user_builder())),
    }
}

fn extended(builder: EnvironmentBuilder) -> EnvironmentBuilder {
    [Library::Math, Library::Encoders, Library::Bindings]
        .into_iter()
        .fold(builder, EnvironmentBuilder::library)
}

fn built(builder: EnvironmentBuilder) -> Result<Environment, Failure> {
    let usage = |error: navicert_cel::EnvironmentError| Failure::Message {
        exit: Exit::Usage,
        text: error.to_string(),
    };
    builder.build().map_err(usage)
}

/// The expression itself, or standard input for `-`.
fn expression(argument: &str) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| {
        Failure::bad_input(format!("failed to read the expression from standard input: {error}"))
    })?;
    Ok(text.trim_end().to_owned())
}

/// Reads a JSON file. Errors do not quote its content, which may be a token's.
fn json_object(path: &Path) -> Result<Value, Failure> {
    let name = path.display();
    let text = std::fs::read(path)
        .map_err(|error| Failure::bad_input(format!("failed to read `{name}`: {error}")))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        Failure::bad_input(format!(
            "`{name}` is not valid JSON: line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::bad_input(format!("`{name}` must contain a JSON object")))
    }
}
