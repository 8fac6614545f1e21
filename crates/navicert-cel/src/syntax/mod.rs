//! From text to tree: lexer, parser with macro expansion, the tree, and the way back to text.

pub mod ast;
mod lexer;
mod literal;
mod macros;
mod parser;
pub mod query;
pub mod unparse;

pub(crate) use macros::Macros;
pub(crate) use parser::{ParseOptions, parse};
