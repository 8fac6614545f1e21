#![doc = include_str!("../README.md")]
//!
//! # Stages
//!
//! ```text
//! text ── parse ──▶ Tree ── check ──▶ types ── plan ──▶ Program ── evaluate ──▶ ValueRef + cost
//! ```
//!
//! # Errors at compile time
//!
//! They have a position and often a suggestion:
//!
//! ```
//! # use navicert_cel::kubernetes::claims_environment;
//! let error = claims_environment().compile("claims.groups.all(g, g != 'root')").unwrap_err();
//! let text = error.to_string();
//! assert!(text.contains("<input>:1:7: expression of type 'any' cannot be range of a comprehension"));
//! assert!(text.contains("hint: a claim has type any; iterate over `dyn(claims.x)` instead"));
//! ```
//!
//! # An environment of your own
//!
//! An environment declares variables with types, objects with fields, and libraries, and selects the semantics to
//! follow.
//!
//! ```
//! use navicert_cel::{Arena, Bindings, Environment, Reading, ValueRef};
//!
//! let environment = Environment::standard().variable("order", "map(string, dyn)").build()?;
//! let program = environment.compile("order.lines.map(l, l.price * l.count)")?;
//!
//! let order = serde_json::json!({ "lines": [{ "price": 3, "count": 2 }, { "price": 5, "count": 1 }] });
//! let reading = Reading { integers: true, unescape: false };
//! let arena = Arena::new();
//! let found = program.evaluate(&arena, &Bindings::new().with("order", ValueRef::from_json(&order, reading)))?;
//! let ValueRef::List(prices) = found.value else { panic!("a list") };
//! assert_eq!(prices.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! | resource | limit |
//! | --- | --- |
//! | text | 100,000 code points, nesting depth 250 as counted by cel-go's parser |
//! | work | [`EvalLimits::cost`], computed as in cel-go and Kubernetes; 1,000,000 by default |
//! | memory | [`Arena::with_limit`], checked before a call allocates its result; 8 MiB by default |
//! | time | [`EvalLimits::interrupt`], called at every loop iteration and every 1,024 units of cost |
//!
//! Reaching a limit is an error that `||`, `&&`, `all` and `exists` do not absorb. Neither expressions nor data can
//! overflow the stack of a thread with 2 MiB.
//!
//! # Errors
//!
//! A failed evaluation has a kind, [`EvalErrorKind`]. Its text can be logged: keys, indexes and arguments that come from the data are
//! [`Untrusted`] and printed as `…`. [`EvalErrorKind::exposed`] gives cel-go's text with these values.
//!
//! ```
//! # use navicert_cel::kubernetes::claims_environment;
//! # use navicert_cel::{Arena, Bindings, Claims, ValueRef};
//! let rule = claims_environment().compile_rule("timestamp(0).getHours(string(claims.zone)) < 12")?;
//! let token = serde_json::json!({ "zone": "Mars/Olympus" });
//! let claims = Claims::Object(token.as_object().expect("an object"));
//! let arena = Arena::new();
//! let error = rule.evaluate(&arena, &Bindings::new().with("claims", ValueRef::Claims(claims))).unwrap_err();
//! assert_eq!(error.to_string(), "unknown time zone");
//! assert_eq!(error.error.kind.exposed(), "unknown time zone Mars/Olympus");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Comparison with other crates
//!
//! | | this crate | `cel` 0.15 | `cel-core` 0.5 |
//! | --- | --- | --- | --- |
//! | type checker, `any` distinct from `dyn` | yes | none | partly |
//! | Kubernetes' libraries, costs and messages | yes | none | none |
//! | values | borrowed | converted or hand-written | converted |
//! | regular expressions | RE2 semantics, compiled with the program | semantics of `regex`, compiled at every evaluation | as `cel` |
//! | limits | text, depth, cost, memory, time | depth in one parser | none |
//! | protobuf messages | well-known ones only | none | yes |
//!
//! # More
//!
//! [`Program::trace`] records the value of every subexpression; [`syntax::query`] finds the claims that an
//! expression reads; [`syntax::unparse`] formats a tree as text; [`kubernetes::batch`] evaluates JSON requests.

mod check;
mod cost;
mod diagnostic;
mod error;
mod eval;
mod fault;
mod functions;
mod instant;
pub mod kubernetes;
mod language;
mod library;
mod limits;
mod number;
mod opaque;
mod plan;
mod program;
mod source;
mod stack_text;
pub mod syntax;
mod untrusted;
mod value;

pub use check::{Compatibility, Environment, EnvironmentBuilder, EnvironmentError, Library};
pub use diagnostic::{CompileError, Diagnostic, Stage};
pub use error::{ClaimError, EvalError, EvalErrorKind, InternalFault, InvalidArgument, Limit, Misuse};
pub use instant::Timestamp;
pub use limits::EvalLimits;
pub use opaque::Opaque;
pub use program::{Bindings, Evaluation, EvaluationError, Program, Traced};
pub use source::{Position, Source, Span};
pub use untrusted::{Operand, Untrusted};
pub use value::{
    Arena, ClaimSet, Claims, List, Map, Object, Pairs, Reading, Value, ValueMap, ValueRef, unescape,
};
