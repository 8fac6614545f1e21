//! `navicert cel eval`: evaluates one expression over claims, a user or variables, optionally with a trace.

use std::time::Duration;

use navicert_cel::kubernetes::{User, VERSION, render};
use navicert_cel::{
    Arena, Bindings, Claims, Environment, EvalLimits, Evaluation, EvaluationError, Program, Reading, Traced,
    ValueRef,
};
use navicert_types::{Clock, SystemClock};
use serde_json::{Map, Value, json};

use super::{built, compile, expression, extended, json_object, report_compile_error, subject_environment};
use crate::args::Profile;
use crate::args::cel::{EvalArgs, Subject};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Time limit of an evaluation in profile `hardened`; nearly all reach the cost limit long before.
const DEADLINE: Duration = Duration::from_secs(1);

/// Compiles and evaluates the expression, and prints the value.
pub(super) fn run(args: &EvalArgs, output: &mut Output) -> Result<Exit, Failure> {
    let text = expression(args.expression.as_deref().unwrap_or_default())?;
    let data = Data::read(args)?;
    let environment = data.environment(args)?;
    let program = match compile(&environment, &text, args.rule) {
        Ok(program) => program,
        Err(error) => return report_compile_error(&error, output),
    };
    let arena = Arena::new();
    let bindings = data.bindings(&arena)?;
    let start = SystemClock.monotonic();
    let late = || SystemClock.monotonic().saturating_sub(start) > DEADLINE;
    let mut limits = EvalLimits::KUBERNETES;
    if args.language.profile != Some(Profile::Kube) {
        limits.interrupt = Some(&late);
    }
    let (outcome, trace) = if args.trace {
        program.trace(&arena, &bindings, &limits)
    } else {
        (program.evaluate_within(&arena, &bindings, &limits), Vec::new())
    };
    print(&program, &outcome, &trace, output)?;
    let refused_rule = args.rule && matches!(&outcome, Ok(Evaluation { value: ValueRef::Bool(false), .. }));
    Ok(if outcome.is_err() || refused_rule { Exit::No } else { Exit::Done })
}

/// Values of the variables.
enum Data {
    Claims(Map<String, Value>),
    User(User),
    Variables(Vec<(String, Value)>),
}

impl Data {
    fn read(args: &EvalArgs) -> Result<Self, Failure> {
        if let Some(path) = &args.user {
            return Ok(Data::User(User::from_json(&json_object(path)?)));
        }
        if !args.variables.is_empty() {
            return Ok(Data::Variables(args.variables.clone()));
        }
        match args.claims.as_deref().map(json_object).transpose()? {
            Some(Value::Object(claims)) => Ok(Data::Claims(claims)),
            _ => Ok(Data::Claims(Map::new())),
        }
    }

    fn environment(&self, args: &EvalArgs) -> Result<Environment, Failure> {
        let variables = match self {
            Data::Claims(_) => return subject_environment(Subject::Claims, &args.language),
            Data::User(_) => return subject_environment(Subject::User, &args.language),
            Data::Variables(variables) => variables,
        };
        let mut builder = Environment::kubernetes_version(VERSION);
        if args.language.extended {
            builder = extended(builder);
        }
        for (name, _) in variables {
            builder = builder.variable(name, "dyn");
        }
        built(builder)
    }

    fn bindings<'a>(&'a self, arena: &'a Arena) -> Result<Bindings<'a>, Failure> {
        match self {
            Data::Claims(claims) => {
                Ok(Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims))))
            }
            Data::User(user) => {
                let user = user.val(arena).ok_or_else(|| Failure::bad_input("the user is too large"))?;
                Ok(Bindings::new().with("user", user))
            }
            Data::Variables(variables) => {
                let reading = Reading { integers: true, unescape: false };
                let bind = |bindings: Bindings<'a>, (name, value): &'a (String, Value)| {
                    bindings.with(name, ValueRef::from_json(value, reading))
                };
                Ok(variables.iter().fold(Bindings::new(), bind))
            }
        }
    }
}

fn print(
    program: &Program,
    outcome: &Result<Evaluation<'_>, EvaluationError>,
    trace: &[Traced<'_>],
    output: &mut Output,
) -> Result<(), Failure> {
    let parts: Vec<(&str, String)> =
        trace.iter().map(|traced| part(program, traced)).filter(is_informative).collect();
    if output.is_json() {
        return output.json(&as_json(outcome, &parts));
    }
    let width = parts.iter().map(|(text, _)| text.chars().count()).max().unwrap_or_default();
    for (text, value) in &parts {
        output.note(&format!("{text:width$}  {value}"));
    }
    match outcome {
        Ok(found) => output.text(&format!("{}\n", shown(&found.value))),
        Err(error) => {
            let hint = error.error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let source = program.tree().source().slice(error.error.span);
            // The data is the user's own, and the value is printed as well.
            output.error(&format!("{} in `{source}`{hint}", error.error.kind.exposed()));
            Ok(())
        }
    }
}

fn part<'a>(program: &'a Program, traced: &Traced<'_>) -> (&'a str, String) {
    let value = match &traced.outcome {
        Ok(value) => shown(value),
        Err(kind) => format!("error: {}", kind.exposed()),
    };
    (program.tree().source().slice(traced.span), value)
}

/// Whether a subexpression is worth printing: literals and plain variables are not, their values are known.
fn is_informative((text, value): &(&str, String)) -> bool {
    let is_literal = text.starts_with(['\'', '"']) || serde_json::from_str::<Value>(text).is_ok();
    let is_variable = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    !(is_literal || is_variable) || value.starts_with("error: ")
}

fn shown(value: &ValueRef<'_>) -> String {
    render::value(value).map_or_else(|| render::type_name(value), |json| json.to_string())
}

fn as_json(outcome: &Result<Evaluation<'_>, EvaluationError>, parts: &[(&str, String)]) -> Value {
    let mut response = match outcome {
        Ok(found) => json!({
            "ok": true,
            "type": render::type_name(&found.value),
            "value": render::value(&found.value),
            "cost": found.cost,
        }),
        Err(error) => {
            let (message, hint) = (error.error.kind.exposed(), error.error.hint());
            json!({"ok": false, "error": message, "hint": hint, "cost": error.cost})
        }
    };
    if let (false, Some(members)) = (parts.is_empty(), response.as_object_mut()) {
        let trace = parts.iter().map(|(text, value)| json!({"expression": text, "value": value}));
        members.insert("trace".to_owned(), trace.collect());
    }
    response
}
