//! Type checking: declarations, overload resolution and validation of literals.

pub(crate) mod additions;
mod checker;
pub(crate) mod declaration;
mod environment;
mod overloads;
pub(crate) mod types;
mod validate;

pub(crate) use checker::{Checked, Reference, check};
pub use environment::{Compatibility, Environment, EnvironmentBuilder, EnvironmentError, Library};
pub(crate) use environment::{ObjectType, Scope, VariableDeclaration};
