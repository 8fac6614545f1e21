//! Results of compiling and evaluating one expression, as values that serialize to the JSON of `navicert cel … -o json`.
//!
//! They contain values of the evaluated data, which the user has given together with the expression.

use super::render;
use crate::diagnostic::CompileError;
use crate::program::{Evaluation, EvaluationError, Program, Traced};
use crate::value::ValueRef;
use serde::Serialize;
use serde_json::Value as Json;

/// Whether an expression compiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompileReport {
    /// Whether it compiles.
    pub compiled: bool,
    /// The type of its value, if it compiles.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub result_type: Option<String>,
    /// What is wrong with it, if it does not compile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<CompileErrorReport>,
}

/// One error in an expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompileErrorReport {
    /// The message, worded as in cel-go where cel-go has one.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in code points, from 1.
    pub column: u32,
    /// A suggestion.
    pub hint: Option<&'static str>,
}

/// What evaluating an expression gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum EvalReport {
    /// It was evaluated.
    Evaluated {
        /// Its value or error.
        #[serde(flatten)]
        result: EvalResult,
        /// Its subexpressions in the order of evaluation, with `--trace`; without literals and plain variables.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        trace: Vec<TracedExpression>,
    },
    /// It does not compile.
    NotCompiled(CompileReport),
}

/// The value of an expression, or why it has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum EvalResult {
    /// It has a value.
    Value {
        /// `true`.
        ok: bool,
        /// The type of the value.
        #[serde(rename = "type")]
        type_name: String,
        /// The value; `null` also if it has no JSON form.
        value: Option<Json>,
        /// The cost in units.
        cost: u64,
    },
    /// Evaluation failed.
    Error {
        /// `false`.
        ok: bool,
        /// The error.
        error: String,
        /// A suggestion.
        hint: Option<&'static str>,
        /// The cost in units until the failure.
        cost: u64,
    },
}

/// A subexpression and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedExpression {
    /// The source text.
    pub expression: String,
    /// Its value as JSON text, or `error: ` and the error.
    pub value: String,
}

/// The result of one line of a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum BatchEvalReport {
    /// The expression does not compile.
    NotCompiled {
        /// `false`.
        compiled: bool,
        /// Every error, as cel-go prints it.
        compile_error: String,
    },
    /// The expression has a value.
    Value {
        /// `true`.
        compiled: bool,
        /// `true`.
        ok: bool,
        /// The type of the value.
        #[serde(rename = "type")]
        type_name: String,
        /// The value, if it has a JSON form.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Json>,
        /// The cost in units.
        cost: u64,
    },
    /// Evaluation failed.
    Error {
        /// `true`.
        compiled: bool,
        /// `false`.
        ok: bool,
        /// The error.
        error: String,
        /// The cost in units until the failure.
        cost: u64,
    },
}

impl From<&Result<Program, CompileError>> for CompileReport {
    fn from(compiled: &Result<Program, CompileError>) -> Self {
        match compiled {
            Ok(program) => CompileReport {
                compiled: true,
                result_type: Some(program.result_type().to_owned()),
                errors: Vec::new(),
            },
            Err(error) => error.into(),
        }
    }
}

impl From<&CompileError> for CompileReport {
    fn from(error: &CompileError) -> Self {
        let errors = error.diagnostics.iter().map(|diagnostic| CompileErrorReport {
            message: diagnostic.message.clone(),
            line: diagnostic.line,
            column: diagnostic.column,
            hint: diagnostic.hint,
        });
        CompileReport { compiled: false, result_type: None, errors: errors.collect() }
    }
}

impl From<&Result<Evaluation<'_>, EvaluationError>> for EvalResult {
    fn from(outcome: &Result<Evaluation<'_>, EvaluationError>) -> Self {
        match outcome {
            Ok(found) => EvalResult::Value {
                ok: true,
                type_name: render::type_name(&found.value),
                value: render::value(&found.value),
                cost: found.cost,
            },
            Err(error) => EvalResult::Error {
                ok: false,
                error: error.error.kind.exposed(),
                hint: error.error.hint(),
                cost: error.cost,
            },
        }
    }
}

impl TracedExpression {
    /// The subexpressions of a program that are worth showing, with their values.
    pub fn from_trace(program: &Program, trace: &[Traced<'_>]) -> Vec<Self> {
        let traced = |traced: &Traced<'_>| TracedExpression {
            expression: program.tree().source().slice(traced.span).to_owned(),
            value: match &traced.outcome {
                Ok(value) => shown(value),
                Err(kind) => format!("error: {}", kind.exposed()),
            },
        };
        trace.iter().map(traced).filter(TracedExpression::is_informative).collect()
    }

    /// Literals and plain variables are not: their values are known.
    fn is_informative(&self) -> bool {
        let text = &self.expression;
        let is_literal = text.starts_with(['\'', '"']) || serde_json::from_str::<Json>(text).is_ok();
        let is_variable = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        !(is_literal || is_variable) || self.value.starts_with("error: ")
    }
}

/// A value as JSON text, or its type if it has no JSON form.
pub fn shown(value: &ValueRef<'_>) -> String {
    render::value(value).map_or_else(|| render::type_name(value), |json| json.to_string())
}
