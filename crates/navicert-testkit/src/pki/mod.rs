//! Keys and what they sign: certificates of a test CA, and JSON Web Tokens, valid and forged. Opens no socket.

pub mod ca;
pub mod jws;
