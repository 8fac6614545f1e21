//! The functions of CEL's libraries on plain Rust types: strings, numbers, addresses. They do not depend on the
//! value types; `crate::functions` wraps them in overloads.

pub(crate) mod encode;
pub(crate) mod kubernetes;
pub(crate) mod lists_order;
pub(crate) mod math_number;
pub(crate) mod strings_format;
pub(crate) mod strings_quote;
pub(crate) mod strings_text;
