//! A PKCS#11 module, loaded once per process, and the tokens it sees now.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::MechanismType;
use cryptoki::session::Session;
use cryptoki::slot::Slot;

use super::uri::Uri;
use crate::error::SignError;

/// A loaded module. A module is one per process (its `C_Initialize` is), so this crate keeps what it has loaded until
/// the process ends.
pub struct Module {
    path: PathBuf,
    context: Pkcs11,
    /// How many sessions are open, or about to be.
    leases: Mutex<usize>,
}

/// A session, and the promise that the module is not started anew beneath it.
pub(super) struct Leased {
    /// Dropped first.
    pub(super) session: Session,
    _lease: Lease,
}

struct Lease(Arc<Module>);

impl Drop for Lease {
    fn drop(&mut self) {
        let mut leases = self.0.leases.lock().unwrap_or_else(PoisonError::into_inner);
        *leases = leases.saturating_sub(1);
    }
}

static LOADED: Mutex<BTreeMap<PathBuf, Arc<Module>>> = Mutex::new(BTreeMap::new());

impl Module {
    /// Loads a module, which runs its code: whoever calls this has decided that it may.
    ///
    /// # Errors
    /// [`SignError::Module`].
    pub fn load(path: &Path) -> Result<Arc<Self>, SignError> {
        let shown = || path.display().to_string();
        let bad = |problem: String| SignError::Module { path: shown(), problem };
        if !path.is_absolute() {
            return Err(bad("its path must be absolute".to_owned()));
        }
        let real = path.canonicalize().map_err(|error| bad(error.to_string()))?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded.get(&real) {
            return Ok(Arc::clone(module));
        }
        let context = Pkcs11::new(&real).map_err(|error| bad(problem(&error)))?;
        match context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
            Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
            Err(error) => return Err(bad(problem(&error))),
        }
        let module = Arc::new(Module { path: path.to_owned(), context, leases: Mutex::new(0) });
        loaded.insert(real, Arc::clone(&module));
        Ok(module)
    }

    /// Its path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says it is.
    pub fn description(&self) -> String {
        let described = self.context.get_library_info().map(|info| {
            let version = info.library_version();
            let name = [info.manufacturer_id().trim(), info.library_description().trim()].join(" ");
            format!("{} {}.{}", name.trim(), version.major(), version.minor())
        });
        described.unwrap_or_default()
    }

    /// The tokens that are there now.
    ///
    /// # Errors
    /// [`SignError::Device`].
    pub fn tokens(self: &Arc<Self>) -> Result<Vec<Token>, SignError> {
        let _lease = self.lease();
        let slots = self.context.get_slots_with_token().map_err(|error| device(&error))?;
        let mut tokens = Vec::new();
        for slot in slots {
            // An error is a token gone between the two questions.
            tokens.extend(self.token(slot).ok().flatten());
        }
        Ok(tokens)
    }

    /// A session on a token.
    pub(super) fn session(self: &Arc<Self>, token: &Token) -> Result<Leased, SignError> {
        let lease = self.lease();
        match self.context.open_ro_session(token.slot) {
            Ok(session) => Ok(Leased { session, _lease: lease }),
            Err(Error::Pkcs11(RvError::TokenNotPresent | RvError::DeviceRemoved, _)) => {
                Err(SignError::Removed { token: token.label.clone() })
            }
            Err(error) => Err(device(&error)),
        }
    }

    /// Starts the module anew, unless somebody uses it: some see a device that was put back only then.
    pub(super) fn look_again(&self) {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if *leases == 0 && self.context.clone().finalize().is_ok() {
            // If it does not start again, the next question says so.
            let _ = self.context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK));
        }
    }

    fn lease(self: &Arc<Self>) -> Lease {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        *leases = leases.saturating_add(1);
        Lease(Arc::clone(self))
    }

    fn token(&self, slot: Slot) -> Result<Option<Token>, Error> {
        let facts = self.context.get_token_info(slot)?;
        if !facts.token_initialized() {
            return Ok(None);
        }
        let described = self.context.get_slot_info(slot)?;
        let signing = |mechanism: &MechanismType| {
            self.context.get_mechanism_info(slot, *mechanism).is_ok_and(|facts| facts.sign())
        };
        let mechanisms = self.context.get_mechanism_list(slot)?.into_iter().filter(signing).collect();
        let text = |text: &str| text.trim_end_matches([' ', '\0']).to_owned();
        Ok(Some(Token {
            slot,
            slot_description: text(described.slot_description()),
            slot_manufacturer: text(described.manufacturer_id()),
            label: text(facts.label()),
            manufacturer: text(facts.manufacturer_id()),
            model: text(facts.model()),
            serial: text(facts.serial_number()),
            needs_login: facts.login_required(),
            has_pin_pad: facts.protected_authentication_path(),
            pin: match () {
                () if facts.user_pin_locked() => PinState::Locked,
                () if facts.user_pin_final_try() => PinState::LastTry,
                () if facts.user_pin_count_low() => PinState::CountLow,
                () => PinState::Fine,
            },
            mechanisms,
        }))
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A token as it was when it was looked at.
#[derive(Clone, Debug)]
pub struct Token {
    pub(super) slot: Slot,
    pub(super) slot_description: String,
    pub(super) slot_manufacturer: String,
    /// Its label.
    pub label: String,
    /// Who made it.
    pub manufacturer: String,
    /// Which model.
    pub model: String,
    /// Its serial number.
    pub serial: String,
    /// Whether its private keys need a PIN.
    pub needs_login: bool,
    /// Whether the PIN is typed at the device itself.
    pub has_pin_pad: bool,
    /// What it remembers of wrong PINs.
    pub pin: PinState,
    /// What it can sign with.
    pub(super) mechanisms: Vec<MechanismType>,
}

/// What a token remembers of wrong PINs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinState {
    /// Nothing.
    Fine,
    /// There was one since the last right one.
    CountLow,
    /// The next wrong one locks it.
    LastTry,
    /// It is locked.
    Locked,
}

impl Token {
    /// The slot's number.
    pub fn slot_id(&self) -> u64 {
        self.slot.id()
    }

    /// Whether a URI means this token.
    pub fn is_meant_by(&self, uri: &Uri) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        fits(&uri.token, &self.label)
            && fits(&uri.manufacturer, &self.manufacturer)
            && fits(&uri.model, &self.model)
            && fits(&uri.serial, &self.serial)
            && fits(&uri.slot_description, &self.slot_description)
            && fits(&uri.slot_manufacturer, &self.slot_manufacturer)
            && uri.slot_id.is_none_or(|wanted| wanted == self.slot_id())
    }
}

fn problem(error: &Error) -> String {
    match error {
        Error::LibraryLoading(error) => error.to_string(),
        Error::MissingSymbol(_) => "it is no PKCS#11 module".to_owned(),
        // The standard's own prose about these codes helps nobody.
        Error::Pkcs11(code, function) => format!("{} in C_{function:?}", code_name(*code)),
        error => error.to_string(),
    }
}

/// Any other word of a module.
pub(super) fn device(error: &Error) -> SignError {
    match error {
        Error::Pkcs11(code, function) => {
            SignError::Device { operation: format!("C_{function:?}"), code: code_name(*code) }
        }
        error => SignError::Internal(error.to_string()),
    }
}

/// The code as the standard spells it: `GeneralError` is `CKR_GENERAL_ERROR`.
pub(super) fn code_name(code: RvError) -> String {
    let mut name = String::from("CKR");
    for c in format!("{code:?}").chars() {
        if c.is_uppercase() {
            name.push('_');
        }
        name.extend(c.to_uppercase());
    }
    name
}
