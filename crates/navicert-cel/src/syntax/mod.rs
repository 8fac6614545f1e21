//! Syntax: lexer, parser with macro expansion, syntax tree, queries and unparsing.

pub mod ast;
mod lexer;
mod literal;
mod macros;
mod parser;
pub mod query;
pub mod unparse;

pub(crate) use macros::Macros;
pub(crate) use parser::{ParseOptions, RESERVED, parse};
