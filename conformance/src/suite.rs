//! The published conformance suite of the language, in the standard environment against its own expectations and in the
//! Kubernetes environment against what Kubernetes made of it.

use crate::report::Report;
use crate::skips;
use crate::values;
use navicert_cel::{
    Arena, Bindings, CompileError, Environment, EnvironmentBuilder, Evaluation, EvaluationError, Program,
    Value,
};
use serde_json::Value as Json;
use std::path::Path;
use std::sync::LazyLock;

/// The files of the suite.
pub const FILES: [&str; 30] = [
    "basic",
    "bindings_ext",
    "block_ext",
    "comparisons",
    "conversions",
    "dynamic",
    "encoders_ext",
    "enums",
    "fields",
    "fp_math",
    "integer_math",
    "lists",
    "logic",
    "macros",
    "macros2",
    "math_ext",
    "namespace",
    "network_ext",
    "optionals",
    "parse",
    "plumbing",
    "proto2",
    "proto2_ext",
    "proto3",
    "string",
    "string_ext",
    "timestamps",
    "type_deduction",
    "unknowns",
    "wrappers",
];

static STANDARD: LazyLock<EnvironmentBuilder> = LazyLock::new(Environment::standard);
static KUBERNETES: LazyLock<EnvironmentBuilder> = LazyLock::new(|| Environment::kubernetes_version(37));

/// Every test that needs no protobuf messages.
///
/// # Panics
/// If a file of the suite is missing or is not JSON.
pub fn tests(dir: &Path) -> Vec<Json> {
    let mut found = Vec::new();
    for file in FILES {
        let json = json(dir, &format!("{file}.json"));
        let tests = json.get("tests").and_then(Json::as_array).cloned().unwrap_or_default();
        found.extend(tests.into_iter().filter(|test| !flag(test, "needs_proto")));
    }
    found
}

#[expect(clippy::panic, reason = "a suite without its files proves nothing")]
fn json(dir: &Path, name: &str) -> Json {
    let path = dir.join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("failed to read the CEL suite's {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{} is not JSON: {error}", path.display()))
}

fn flag(test: &Json, name: &str) -> bool {
    test.get(name).and_then(Json::as_bool).unwrap_or(false)
}

fn text<'t>(test: &'t Json, name: &str) -> &'t str {
    test.get(name).and_then(Json::as_str).unwrap_or("")
}

/// Declares what a test declares.
fn environment(mut builder: EnvironmentBuilder, test: &Json) -> Result<Environment, String> {
    builder = builder.container(text(test, "container"));
    let mut declared = Vec::new();
    for entry in test.get("type_env").and_then(Json::as_array).map_or(&[][..], |entries| entries) {
        let name = text(entry, "name");
        declared.push(name);
        match entry.get("overloads").and_then(Json::as_array) {
            None => builder = builder.variable(name, text(entry, "type")),
            Some(overloads) => {
                for overload in overloads {
                    builder = builder.function(text(overload, "id"), &signature(name, overload));
                }
            }
        }
    }
    // Unchecked tests bind without declaring.
    if let Some(bindings) = test.get("bindings").and_then(Json::as_object) {
        for name in bindings.keys().filter(|name| !declared.contains(&name.as_str())) {
            builder = builder.variable(name, "dyn");
        }
    }
    if flag(test, "disable_macros") {
        builder = builder.without_macros();
    }
    builder.build().map_err(|error| error.to_string())
}

fn signature(name: &str, overload: &Json) -> String {
    let params: Vec<&str> = overload
        .get("params")
        .and_then(Json::as_array)
        .map_or(&[][..], |params| params)
        .iter()
        .filter_map(Json::as_str)
        .collect();
    let result = text(overload, "result");
    match params.split_first() {
        Some((receiver, rest)) if flag(overload, "member") => {
            format!("({receiver}).{name}({}): {result}", rest.join(", "))
        }
        _ => format!("{name}({}): {result}", params.join(", ")),
    }
}

fn compile(environment: &Environment, test: &Json) -> Result<Program, CompileError> {
    if flag(test, "disable_check") {
        return environment.compile_unchecked(text(test, "expr"));
    }
    environment.compile(text(test, "expr"))
}

/// Owned values of a test's variables.
fn bindings(test: &Json) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    if let Some(bindings) = test.get("bindings").and_then(Json::as_object) {
        for (name, value) in bindings {
            if let Some(value) = values::read(value) {
                found.push((name.clone(), value));
            }
        }
    }
    found
}

fn evaluate<T>(
    program: &Program,
    test: &Json,
    look: impl FnOnce(Result<Evaluation<'_>, EvaluationError>) -> T,
) -> T {
    let owned = bindings(test);
    let arena = Arena::new();
    let mut bound = Bindings::new();
    for (name, value) in &owned {
        bound = bound.with(name, value.as_val());
    }
    look(program.evaluate(&arena, &bound))
}

/// The suite against its own expectations.
///
/// # Panics
/// If a file of the suite is missing.
pub fn standard(dir: &Path) -> Report {
    let mut report = Report::default();
    for test in tests(dir) {
        let id = text(&test, "id").to_owned();
        if let Some(reason) = skips::reason("cel.standard", &id) {
            report.skipped.push((id, reason.to_owned()));
            continue;
        }
        report.note(&id, standard_test(&test));
    }
    report
}

fn standard_test(test: &Json) -> Result<(), String> {
    let expect = test.get("expect").cloned().unwrap_or(Json::Null);
    let wants_error = expect.get("error").is_some() || expect.get("any_error").is_some();
    let environment = environment(STANDARD.clone(), test)?;
    let program = match compile(&environment, test) {
        Ok(_) if flag(test, "check_only") && wants_error => return Err("compiles".to_owned()),
        Ok(program) => program,
        Err(_) if wants_error => return Ok(()),
        Err(error) => return Err(format!("{}: does not compile: {error}", text(test, "expr"))),
    };
    if let Some(expected) = expect.get("type").and_then(Json::as_str) {
        if !same_type(program.result_type(), expected) {
            return Err(format!("type {} instead of {expected}", program.result_type()));
        }
        if flag(test, "check_only") {
            return Ok(());
        }
    }
    evaluate(&program, test, |outcome| match (outcome, expect.get("value")) {
        (Ok(found), Some(value)) if values::agrees(&found.value, value) => Ok(()),
        (Ok(found), _) => Err(format!("{}: {:?} instead of {expect}", text(test, "expr"), found.value)),
        (Err(_), None) if wants_error => Ok(()),
        (Err(error), _) => {
            Err(format!("{}: {} instead of {expect}", text(test, "expr"), error.error.kind.exposed()))
        }
    })
}

/// Types as the suite and as the checker write them: `null` has two names.
pub fn same_type(ours: &str, theirs: &str) -> bool {
    ours.replace("null", "null_type") == theirs
}

/// The suite in the Kubernetes environment against the recorded outcomes: phase, value, type and cost.
///
/// # Panics
/// If a file of the suite or the outcomes are missing.
pub fn kubernetes(dir: &Path) -> Report {
    let mut report = Report::default();
    let recorded = json(dir, "k8s/outcomes-1.37.json");
    let outcomes = recorded.get("outcomes");
    for test in tests(dir) {
        let id = text(&test, "id").to_owned();
        match outcomes.and_then(|outcomes| outcomes.get(&id)) {
            None => report.note(&id, Err("no outcome is recorded".to_owned())),
            Some(expected) => {
                let mut expected = expected.clone();
                if let (Some(reason), Some(members)) =
                    (skips::reason("cel.cost", &id), expected.as_object_mut())
                {
                    members.remove("cost");
                    report.skipped.push((format!("{id} (cost)"), reason.to_owned()));
                }
                let verdict = environment(KUBERNETES.clone(), &test).and_then(|environment| {
                    let compiled = compile(&environment, &test);
                    kubernetes_outcome(compiled, &test, &expected)
                });
                report.note(&id, verdict);
            }
        }
    }
    report
}

fn kubernetes_outcome(
    compiled: Result<Program, CompileError>,
    test: &Json,
    expected: &Json,
) -> Result<(), String> {
    let expr = text(test, "expr");
    let program = match compiled {
        Ok(_) if text(expected, "phase") == "compile" => return Err(format!("{expr}: compiles; {expected}")),
        Ok(program) => program,
        Err(_) if text(expected, "phase") == "compile" => return Ok(()),
        Err(error) => return Err(format!("{expr}: does not compile: {error}")),
    };
    if let Some(wanted) = expected.get("type").and_then(Json::as_str)
        && !flag(test, "disable_check")
        && !same_type(program.result_type(), wanted)
    {
        return Err(format!("{expr}: type {} instead of {wanted}", program.result_type()));
    }
    if flag(test, "check_only") {
        return Ok(());
    }
    evaluate(&program, test, |outcome| compare(expr, &outcome, expected))
}

/// Value or failure, and cost.
pub fn compare(
    expr: &str,
    outcome: &Result<Evaluation<'_>, EvaluationError>,
    expected: &Json,
) -> Result<(), String> {
    let cost = match outcome {
        Ok(found) => found.cost,
        Err(error) => error.cost,
    };
    match (outcome, expected.get("value")) {
        (Ok(found), Some(value)) if values::agrees(&found.value, value) => {}
        (Ok(found), _) => return Err(format!("{expr}: {:?} instead of {expected}", found.value)),
        (Err(_), None) if text(expected, "phase") == "eval" => {}
        (Err(error), _) => {
            return Err(format!("{expr}: {} instead of {expected}", error.error.kind.exposed()));
        }
    }
    match expected.get("cost").and_then(Json::as_u64) {
        Some(wanted) if wanted != cost => {
            let value = match outcome {
                Ok(found) => format!("{:?}", found.value),
                Err(error) => error.error.kind.exposed(),
            };
            Err(format!(
                "{expr}: cost {cost} instead of {wanted} ({})",
                value.chars().take(60).collect::<String>()
            ))
        }
        _ => Ok(()),
    }
}
