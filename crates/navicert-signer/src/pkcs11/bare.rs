//! A plain `C_Sign` call without this crate's session handling: the baseline of the benchmarks.

use std::path::Path;

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, ObjectClass};
use cryptoki::session::UserType;
use cryptoki::types::AuthPin;

/// A logged-in session with a P-256 key; each call signs one digest.
///
/// # Errors
/// The error of the module.
pub fn signer(
    module: &Path,
    token: &str,
    id: &[u8],
    pin: &str,
) -> Result<impl FnMut() -> Result<Vec<u8>, String> + use<>, String> {
    let failed = |error: Error| error.to_string();
    let context = Pkcs11::new(module).map_err(failed)?;
    match context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
        Err(error) => return Err(error.to_string()),
    }
    let slots = context.get_slots_with_token().map_err(failed)?;
    let matches = |slot: &cryptoki::slot::Slot| {
        context.get_token_info(*slot).is_ok_and(|facts| facts.label().trim_end() == token)
    };
    let slot = slots.into_iter().find(matches).ok_or("no such token")?;
    let session = context.open_ro_session(slot).map_err(failed)?;
    match session.login(UserType::User, Some(&AuthPin::from(pin))) {
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {}
        Err(error) => return Err(error.to_string()),
    }
    let wanted = [Attribute::Class(ObjectClass::PRIVATE_KEY), Attribute::Id(id.to_vec())];
    let key = session.find_objects(&wanted).map_err(failed)?.into_iter().next().ok_or("no such key")?;
    Ok(move || session.sign(&Mechanism::Ecdsa, key, &[7; 32]).map_err(failed))
}
