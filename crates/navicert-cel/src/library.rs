//! The functions of CEL's libraries on plain Rust types: strings, numbers, addresses. They do not depend on the
//! value types; `crate::functions` wraps them in overloads.

pub mod encode;
pub mod kubernetes;
pub mod lists_order;
pub mod math_number;
pub mod strings_format;
pub mod strings_quote;
pub mod strings_text;
