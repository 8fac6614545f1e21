//! `navicert cel check|eval`: compiles and evaluates expressions as kube-apiserver does.

mod eval;

use std::io::{self, Read};
use std::path::Path;

use navicert_cel::kubernetes::report::CompileReport;
use navicert_cel::kubernetes::{self, batch};
use navicert_cel::{CompileError, Environment, EnvironmentBuilder, Library, Program};
use serde_json::Value;

use super::batch::process_lines;
use crate::args::cel::{CelVerb, CheckArgs, LanguageArgs, Subject};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(verb: &CelVerb, output: &mut Output) -> Result<Exit, Failure> {
    match verb {
        CelVerb::Check(args) => check(args, output),
        CelVerb::Eval(args) if args.jsonl => {
            process_lines(|request| batch::evaluate(request, args.language.minor()), output)
        }
        CelVerb::Eval(args) => eval::run(args, output),
    }
}

/// Compiles the expression and prints its type.
fn check(args: &CheckArgs, output: &mut Output) -> Result<Exit, Failure> {
    let text = expression(&args.expression)?;
    let environment = subject_environment(args.subject, &args.language)?;
    let compiled = compile(&environment, &text, args.rule);
    if output.is_json() {
        output.json(&CompileReport::from(&compiled))?;
    }
    match compiled {
        Ok(_) if output.is_json() => Ok(Exit::Done),
        Ok(program) => {
            output.text(&format!("{}\n", program.result_type()))?;
            Ok(Exit::Done)
        }
        Err(error) => {
            if !output.is_json() {
                output.note(&error.to_string());
            }
            Ok(Exit::No)
        }
    }
}

fn compile(environment: &Environment, text: &str, rule: bool) -> Result<Program, CompileError> {
    if rule { environment.compile_rule(text) } else { environment.compile(text) }
}

/// The environment of one of the two subjects of structured authentication.
fn subject_environment(subject: Subject, language: &LanguageArgs) -> Result<Environment, Failure> {
    let minor = language.minor();
    match (subject, language.extended) {
        (Subject::Claims, false) => Ok(kubernetes::claims_environment_of(minor)),
        (Subject::User, false) => Ok(kubernetes::user_environment_of(minor)),
        (Subject::Claims, true) => built(extended(kubernetes::claims_builder(minor))),
        (Subject::User, true) => built(extended(kubernetes::user_builder(minor))),
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
