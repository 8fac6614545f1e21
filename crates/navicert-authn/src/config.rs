//! From the text of an `AuthenticationConfiguration` to something that can authenticate:
//! `load` (text → types) → `validate` (every rule, every error) → `compile` (expressions → programs).

mod certificates;
mod compile;
mod email_rule;
mod extra_key;
pub mod lint;
mod load;
pub mod migrate;
mod reload;
mod side_car;
pub(crate) mod url_form;
mod validate;
mod violation;

pub use compile::{
    Compiled, CompiledAuthenticator, CompiledIssuer, Egress, Expression, Extra, Mapping, RequiredClaim, Rule,
};
pub use load::{ConfigError, Loaded, load, load_beside};
pub use reload::{LoadError, Origin, Reload, Reloader, Sources, Tended};
pub use side_car::{
    API_VERSION, BaseProfile, IssuerSettings, NavicertConfiguration, ReloadHealth, SideCarError,
};
pub use validate::{validate, validate_beside};
pub use violation::{Violation, ViolationKind, Violations};
