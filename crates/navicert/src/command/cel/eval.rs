//! `navicert cel eval`: evaluates one expression over claims, a user or variables, optionally with a trace.

use std::time::Duration;

use navicert_cel::kubernetes::User;
use navicert_cel::kubernetes::report::{EvalReport, TracedExpression, shown};
use navicert_cel::{
    Arena, Bindings, Claims, Environment, EvalLimits, Evaluation, EvaluationError, Program, Reading, Traced,
    ValueRef,
};
use navicert_types::{Clock, SystemClock};
use serde_json::{Map, Value};

use super::{built, compile, expression, extended, json_object, subject_environment};
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
        Err(error) if output.is_json() => {
            output.json(&EvalReport::NotCompiled((&error).into()))?;
            return Ok(Exit::No);
        }
        Err(error) => {
            output.note(&error.to_string());
            return Ok(Exit::No);
        }
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
        let mut builder = Environment::kubernetes_version(args.language.minor());
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
    let trace = TracedExpression::from_trace(program, trace);
    if output.is_json() {
        return output.json(&EvalReport::Evaluated { result: outcome.into(), trace });
    }
    let width = trace.iter().map(|part| part.expression.chars().count()).max().unwrap_or_default();
    for TracedExpression { expression, value } in &trace {
        output.note(&format!("{expression:width$}  {value}"));
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
