//! From the text of an `AuthenticationConfiguration` to something that can authenticate:
//! `load` (text → types) → `validate` (every rule, every error) → `compile` (expressions → programs).

mod certificates;
mod compile;
mod email_rule;
mod extra_key;
mod load;
pub mod migrate;
mod url_form;
mod validate;
mod violation;

pub use compile::{
    Compiled, CompiledAuthenticator, CompiledIssuer, Egress, Expression, Extra, Mapping, RequiredClaim, Rule,
};
pub use load::{ConfigError, Loaded, load};
pub use validate::validate;
pub use violation::{Violation, ViolationKind, Violations};
