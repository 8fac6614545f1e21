//! The Common Expression Language as Kubernetes runs it: checked, bounded, over borrowed data.

mod check;
mod cost;
mod diagnostic;
mod eval;
mod fault;
mod functions;
pub mod instant;
pub mod kubernetes;
pub mod library;
mod limits;
pub mod number;
mod opaque;
mod plan;
mod program;
mod source;
pub mod stack_text;
pub mod syntax;
mod value;

pub use check::{Compatibility, Environment, EnvironmentBuilder, EnvironmentError, Library};
pub use diagnostic::{CompileError, Diagnostic, Stage};
pub use fault::{EvalError, Limit};
pub use limits::Limits;
pub use opaque::Opaque;
pub use program::{Bindings, Evaluation, EvaluationError, Program, Traced};
pub use source::{Position, Source, Span};
pub use value::{Arena, ClaimSet, Claims, List, Map, Object, Pairs, Reading, Val, Value, ValueMap, unescape};
