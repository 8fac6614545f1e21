//! Keys in a PKCS#11 token: a smartcard, a YubiKey, a TPM, an HSM, or SoftHSM.
//!
//! ```text
//! uri (which key) ──▶ module (the shared library, its tokens) ──▶ session (log in, find) ──▶ sign
//! ```
//!
//! Without the feature `pkcs11`, keys can be named but not opened.

#[cfg(all(feature = "pkcs11", any(test, feature = "test-util")))]
pub mod bare;
mod configuration;
#[cfg(feature = "pkcs11")]
mod enrollment;
#[cfg(feature = "pkcs11")]
mod inventory;
#[cfg(feature = "pkcs11")]
mod key_builder;
#[cfg(feature = "pkcs11")]
mod key_store;
#[cfg(feature = "pkcs11")]
mod module;
#[cfg(feature = "pkcs11")]
mod module_discovery;
#[cfg(feature = "pkcs11")]
mod session;
#[cfg(feature = "pkcs11")]
mod sign;
mod uri;

pub use configuration::{ConfigurationError, KeySelection};
#[cfg(feature = "pkcs11")]
pub use enrollment::{DeviceKey, NewKey};
#[cfg(feature = "pkcs11")]
pub use inventory::{CertificateHolder, FoundKey, inventory};
#[cfg(feature = "pkcs11")]
pub use key_builder::KeyBuilder;
#[cfg(feature = "pkcs11")]
pub use key_store::{PinProviderFactory, Pkcs11KeyStore};
#[cfg(feature = "pkcs11")]
pub use module::{PinState, Pkcs11Module, Pkcs11Token};
#[cfg(feature = "pkcs11")]
pub use module_discovery::known_modules;
#[cfg(feature = "pkcs11")]
pub use session::{Pkcs11Key, open};
pub use uri::{ObjectType, Pkcs11Uri, UriError};
