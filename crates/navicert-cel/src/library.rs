//! The functions of CEL's libraries over plain Rust types: text, numbers, addresses. The engine wraps them in
//! overloads; nothing here knows its values.

pub mod kubernetes;
