//! Reports: the keys of tokens and the test signatures of a key, as values that serialize to the JSON of
//! `navicert signer … -o json` and print as text.

mod check;
#[cfg(feature = "pkcs11")]
mod list;

pub use check::{CheckReport, SchemeCheck};
#[cfg(feature = "pkcs11")]
pub use list::{CertificateReport, KeyReport, ListReport, ModuleReport, SIGNER_PROGRAM, TokenReport};
