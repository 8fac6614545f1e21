//! Loads an `AuthenticationConfiguration`:
//! `load` (text → types) → `validate` (every rule, every error) → `compile` (expressions → programs).

mod certificates;
mod compile;
mod email_rule;
mod extra_key;
pub(crate) mod go_url;
pub mod lint;
mod load;
pub mod migrate;
mod navicert_config;
mod reload;
mod validate;
mod violation;

pub use compile::{
    AttributeMapping, CompiledAuthenticator, CompiledConfig, CompiledExpression, CompiledIssuer, Egress,
    ExtraAttribute, RequiredClaim, ValidationRule,
};
pub use load::{ConfigError, LoadedConfig, load, load_excluding_issuers};
pub use navicert_config::{
    API_VERSION, BaseProfile, IssuerSettings, NavicertConfigError, NavicertConfiguration, ReloadHealth,
};
pub use reload::{AuthnLoadError, AuthnReloader, ConfigOrigin, ConfigSources, ReloadCheck, ReloadOutcome};
pub use validate::{validate, validate_excluding_issuers};
pub use violation::{Violation, ViolationKind, Violations};
