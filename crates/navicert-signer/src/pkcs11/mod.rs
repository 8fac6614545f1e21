//! Keys in a PKCS#11 token: a smartcard, a YubiKey, a TPM, an HSM, or SoftHSM.
//!
//! ```text
//! uri (which key) ──▶ module (the shared library, its tokens) ──▶ session (log in, find) ──▶ sign
//! ```

#[cfg(any(test, feature = "test-util"))]
pub mod bare;
pub mod configuration;
mod inventory;
mod module;
mod places;
mod ring;
mod session;
mod sign;
pub mod uri;

pub use configuration::{ConfigurationError, Selection};
pub use inventory::{FoundKey, Holder, inventory};
pub use module::{Module, PinState, Token};
pub use places::known_modules;
pub use ring::{ChooseAsk, Pkcs11Ring};
pub use session::{Pkcs11Key, open};
pub use uri::{Uri, UriError};
