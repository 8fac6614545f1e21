//! Keys in a PKCS#11 token: a smartcard, a YubiKey, a TPM, an HSM, or SoftHSM.
//!
//! ```text
//! uri (which key) ──▶ module (the shared library, its tokens) ──▶ session (log in, find) ──▶ sign
//! ```

pub mod configuration;
mod inventory;
mod module;
mod ring;
mod session;
mod sign;
pub mod uri;

pub use configuration::{ConfigurationError, Selection};
pub use inventory::{FoundKey, inventory};
pub use module::{Module, PinState, Token};
pub use ring::{ChooseAsk, Pkcs11Ring};
pub use session::{Pkcs11Key, open};
pub use uri::{Uri, UriError};
