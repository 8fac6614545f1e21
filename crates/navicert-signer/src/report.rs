//! Reports: the keys of tokens, the test signatures of a key, and certificate requests, as values that serialize to the JSON of
//! `navicert signer … -o json` and print as text.

mod check;
#[cfg(feature = "pkcs11")]
mod list;
mod request;

pub use check::{CheckReport, SchemeCheck};
#[cfg(feature = "pkcs11")]
pub use list::{CertificateReport, KeyReport, ListReport, ModuleReport, SIGNER_PROGRAM, TokenReport};
pub use request::RequestReport;
