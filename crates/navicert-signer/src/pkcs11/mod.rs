//! Keys in a PKCS#11 token: a smartcard, a YubiKey, a TPM, an HSM, or SoftHSM.
//!
//! ```text
//! uri (which key) ──▶ module (the shared library, its tokens) ──▶ session (log in, find) ──▶ sign
//! ```

#[cfg(any(test, feature = "test-util"))]
pub mod bare;
pub mod configuration;
mod inventory;
mod key_builder;
mod key_store;
mod module;
mod module_discovery;
mod session;
mod sign;
pub mod uri;

pub use configuration::{ConfigurationError, KeySelection};
pub use inventory::{CertificateHolder, FoundKey, inventory};
pub use key_builder::KeyBuilder;
pub use key_store::{PinProviderFactory, Pkcs11KeyStore};
pub use module::{PinState, Pkcs11Module, Pkcs11Token};
pub use module_discovery::known_modules;
pub use session::{Pkcs11Key, open};
pub use uri::{Pkcs11Uri, UriError};
