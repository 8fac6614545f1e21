//! Syntax: lexer, parser with macro expansion, syntax tree, and formatting as text.

pub mod ast;
mod lexer;
mod literal;
mod macros;
mod parser;
pub mod query;
pub mod unparse;

pub(crate) use macros::Macros;
pub(crate) use parser::{ParseOptions, parse};
