//! Loads an `AuthenticationConfiguration`:
//! `load` (text → types) → `validate` (every rule, every error) → `compile` (expressions → programs).

mod certificate_authority_files;
mod certificates;
mod compile;
mod email_rule;
mod extra_key;
pub mod lint;
mod load;
pub mod migrate;
mod navicert_config;
mod possible_values;
mod reload;
mod validate;
mod violation;

pub use certificate_authority_files::CertificateAuthorityFileError;
pub use compile::{
    AttributeMapping, CompiledAuthenticator, CompiledConfig, CompiledExpression, CompiledIssuer, Egress,
    ExtraAttribute, RequiredClaim, ValidationRule,
};
pub use extra_key::is_domain_prefixed_path;
pub use load::{ConfigError, LoadedConfig, load, load_excluding_issuers};
pub use navicert_config::{
    API_VERSION, BaseProfile, IssuerSettings, NavicertConfigError, NavicertConfigErrorKind,
    NavicertConfiguration, ReloadHealth,
};
pub use possible_values::PossibleValues;
pub use reload::{
    AuthnLoadError, AuthnReloader, ConfigOrigin, ConfigSources, FileScope, ReloadCheck, ReloadOutcome,
};
pub use validate::validate;
pub use violation::{Violation, ViolationKind, Violations};
