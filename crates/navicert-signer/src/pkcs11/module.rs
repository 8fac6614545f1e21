//! A PKCS#11 module, loaded once per process, and its present tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::MechanismType;
use cryptoki::session::Session;
use cryptoki::slot::Slot;

use super::uri::Pkcs11Uri;
use crate::error::SignError;

/// A loaded module. `C_Initialize` applies to the whole process, so loaded modules are kept until the process ends.
pub struct Pkcs11Module {
    path: PathBuf,
    context: Pkcs11,
    /// Number of sessions that are open or being opened.
    leases: Mutex<usize>,
}

/// A session. While it exists the module is not reinitialized.
pub(super) struct LeasedSession {
    /// Dropped first.
    pub(super) session: Session,
    _lease: Lease,
}

struct Lease(Arc<Pkcs11Module>);

impl Drop for Lease {
    fn drop(&mut self) {
        let mut leases = self.0.leases.lock().unwrap_or_else(PoisonError::into_inner);
        *leases = leases.saturating_sub(1);
    }
}

static LOADED: Mutex<BTreeMap<PathBuf, Arc<Pkcs11Module>>> = Mutex::new(BTreeMap::new());

impl Pkcs11Module {
    /// Loads a module, which runs its code: callers must have checked that it is allowed.
    ///
    /// # Errors
    /// [`SignError::Module`].
    pub fn load(path: &Path) -> Result<Arc<Self>, SignError> {
        let shown = || path.display().to_string();
        let bad = |problem: String| SignError::Module { path: shown(), problem };
        if !path.is_absolute() {
            return Err(bad("the path must be absolute".to_owned()));
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
        let module = Arc::new(Pkcs11Module { path: path.to_owned(), context, leases: Mutex::new(0) });
        loaded.insert(real, Arc::clone(&module));
        Ok(module)
    }

    /// The path as passed to [`Pkcs11Module::load`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Manufacturer, description and version as the module reports them.
    pub fn description(&self) -> String {
        let described = self.context.get_library_info().map(|info| {
            let version = info.library_version();
            let name = [info.manufacturer_id().trim(), info.library_description().trim()].join(" ");
            format!("{} {}.{}", name.trim(), version.major(), version.minor())
        });
        described.unwrap_or_default()
    }

    /// The tokens present now.
    ///
    /// # Errors
    /// [`SignError::Device`].
    pub fn tokens(self: &Arc<Self>) -> Result<Vec<Pkcs11Token>, SignError> {
        let _lease = self.lease();
        let slots = self.context.get_slots_with_token().map_err(|error| device_error(&error))?;
        let mut tokens = Vec::new();
        for slot in slots {
            // A token may be removed between the two calls; then it is skipped.
            tokens.extend(self.token(slot).ok().flatten());
        }
        Ok(tokens)
    }

    /// Opens a session on a token.
    pub(super) fn session(self: &Arc<Self>, token: &Pkcs11Token) -> Result<LeasedSession, SignError> {
        self.leased(token, Pkcs11::open_ro_session)
    }

    /// Opens a session that can create objects on a token.
    pub(super) fn writing_session(self: &Arc<Self>, token: &Pkcs11Token) -> Result<LeasedSession, SignError> {
        self.leased(token, Pkcs11::open_rw_session)
    }

    fn leased(
        self: &Arc<Self>,
        token: &Pkcs11Token,
        open: impl FnOnce(&Pkcs11, Slot) -> Result<Session, Error>,
    ) -> Result<LeasedSession, SignError> {
        let lease = self.lease();
        match open(&self.context, token.slot) {
            Ok(session) => Ok(LeasedSession { session, _lease: lease }),
            Err(Error::Pkcs11(RvError::TokenNotPresent | RvError::DeviceRemoved, _)) => {
                Err(SignError::Removed { token: token.label.clone() })
            }
            Err(error) => Err(device_error(&error)),
        }
    }

    /// Reinitializes the module unless it has open sessions: some modules detect a reinserted device only then.
    pub(super) fn reinitialize_if_unused(&self) {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if *leases == 0 && self.context.clone().finalize().is_ok() {
            // If initialization fails, the next call reports it.
            let _ = self.context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK));
        }
    }

    fn lease(self: &Arc<Self>) -> Lease {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        *leases = leases.saturating_add(1);
        Lease(Arc::clone(self))
    }

    fn token(&self, slot: Slot) -> Result<Option<Pkcs11Token>, Error> {
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
        Ok(Some(Pkcs11Token {
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

impl fmt::Debug for Pkcs11Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pkcs11Module").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A snapshot of a token's state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pkcs11Token {
    pub(super) slot: Slot,
    pub(super) slot_description: String,
    pub(super) slot_manufacturer: String,
    /// The label.
    pub label: String,
    /// The manufacturer.
    pub manufacturer: String,
    /// The model.
    pub model: String,
    /// The serial number.
    pub serial: String,
    /// Whether private keys require a login.
    pub needs_login: bool,
    /// Whether the PIN is entered on the device itself.
    pub has_pin_pad: bool,
    /// Failed logins as the token reports them.
    pub pin: PinState,
    /// The mechanisms that can sign.
    pub(super) mechanisms: Vec<MechanismType>,
}

/// Failed logins as a token reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinState {
    /// No failed login since the last successful one.
    Fine,
    /// At least one failed login since the last successful one.
    CountLow,
    /// The next incorrect PIN locks the token.
    LastTry,
    /// The token is locked.
    Locked,
}

impl Pkcs11Token {
    /// The slot number.
    pub fn slot_id(&self) -> u64 {
        self.slot.id()
    }

    /// Whether the URI matches this token.
    pub fn matches(&self, uri: &Pkcs11Uri) -> bool {
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
        Error::MissingSymbol(_) => "not a PKCS#11 module".to_owned(),
        // The code's name is more useful than the standard's description of it.
        Error::Pkcs11(code, function) => format!("{} in C_{function:?}", code_name(*code)),
        error => error.to_string(),
    }
}

/// Converts an error of the module that needs no special handling.
pub(super) fn device_error(error: &Error) -> SignError {
    match error {
        Error::Pkcs11(code, function) => {
            SignError::Device { operation: format!("C_{function:?}"), code: code_name(*code) }
        }
        error => SignError::Internal(error.to_string()),
    }
}

/// The code's name in the PKCS#11 standard: `GeneralError` is `CKR_GENERAL_ERROR`.
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
