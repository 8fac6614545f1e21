//! The functions of CEL's libraries over plain Rust types: text, numbers, addresses. The engine wraps them in
//! overloads; nothing here knows its values.

pub mod encode;
pub mod kubernetes;
pub mod lists_order;
pub mod math_number;
pub mod strings_format;
pub mod strings_quote;
pub mod strings_text;
