//! The functions of CEL's libraries over plain Rust types: text, numbers, addresses. The engine wraps them in
//! overloads; nothing here knows its values.

pub mod kubernetes;
pub mod strings_format;
pub mod strings_quote;
pub mod strings_text;
