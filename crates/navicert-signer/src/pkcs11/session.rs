//! One key of one token: found without a PIN where possible, logged in once, shared by threads, and reopened after the
//! device was removed and reinserted.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki::error::{Error, RvError};
use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use rustls_pki_types::CertificateDer;

use super::configuration::KeySelection;
use super::inventory::{self, KeyFilter, PublicObjects};
use super::module::{LeasedSession, PinState, Pkcs11Module, Pkcs11Token, code_name, device_error};
use super::sign;
use super::uri::Pkcs11Uri;
use crate::error::SignError;
use crate::identity::SigningIdentity;
use crate::key::Key;
use crate::pin::{PinPrompt, PinProvider};
use crate::public_key::PublicKey;
use crate::scheme::{Input, Scheme};

/// Finds the key and its certificates. Asks for the PIN only if the token hides its objects without a login; otherwise
/// [`Pkcs11Key::log_in`] or the first signature does.
///
/// # Errors
/// [`SignError`]: the token or key is missing or ambiguous, or the certificate does not match the key.
pub fn open(
    selection: &KeySelection,
    pin_provider: Arc<dyn PinProvider>,
) -> Result<(SigningIdentity, Arc<Pkcs11Key>), SignError> {
    let module = Pkcs11Module::load(&selection.module)?;
    let (key, chain) = Pkcs11Key::find(module, &selection.uri, pin_provider)?;
    let key = Arc::new(key);
    let identity = SigningIdentity::new(chain, Arc::clone(&key) as Arc<dyn Key>).map_err(|error| {
        SignError::UnusableCertificate {
            wanted: KeyFilter::from_uri(&selection.uri).describe(),
            problem: error.to_string(),
        }
    })?;
    Ok((identity, key))
}

/// A private key in a PKCS#11 token.
pub struct Pkcs11Key {
    module: Arc<Pkcs11Module>,
    uri: Pkcs11Uri,
    wanted: KeyFilter,
    label: String,
    public_key: PublicKey,
    schemes: Vec<Scheme>,
    pin_provider: Arc<dyn PinProvider>,
    state: Mutex<SessionState>,
}

/// State of the session.
enum SessionState {
    /// Not logged in yet.
    Closed,
    /// Ready to sign.
    Open(OpenSession),
    /// The device was removed.
    Removed,
    /// The device rejected the PIN. This process does not ask for it again.
    Refused(SignError),
}

struct OpenSession {
    leased: LeasedSession,
    key: ObjectHandle,
    token: Pkcs11Token,
    /// Whether the key requires its PIN for every signature, as PIV slot 9c does.
    always_authenticate: bool,
}

impl OpenSession {
    /// Finds the private key in a logged-in session.
    fn new(leased: LeasedSession, wanted: &KeyFilter, token: Pkcs11Token) -> Result<Self, SignError> {
        let key = private_key(&leased.session, wanted)?;
        let asked = leased.session.get_attributes(key, &[AttributeType::AlwaysAuthenticate]);
        let always = asked.is_ok_and(|values| values.contains(&Attribute::AlwaysAuthenticate(true)));
        Ok(OpenSession { leased, key, token, always_authenticate: always })
    }
}

/// Why a login is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginPurpose {
    /// A new session.
    Session,
    /// A new session with a reinserted device.
    Reconnect,
    /// One signing operation that has been initialized.
    Signature,
}

impl Pkcs11Key {
    /// Finds the key with its certificates.
    fn find(
        module: Arc<Pkcs11Module>,
        uri: &Pkcs11Uri,
        pin_provider: Arc<dyn PinProvider>,
    ) -> Result<(Self, Vec<CertificateDer<'static>>), SignError> {
        let select = |found: PublicObjects, wanted: &KeyFilter| found.into_key_and_chain(wanted);
        Self::find_with(module, uri, pin_provider, PublicObjects::is_complete, select)
    }

    /// Finds the key, whether or not it has a certificate.
    pub(super) fn find_without_certificate(
        module: Arc<Pkcs11Module>,
        uri: &Pkcs11Uri,
        pin_provider: Arc<dyn PinProvider>,
    ) -> Result<Self, SignError> {
        let select = |found: PublicObjects, wanted: &KeyFilter| Ok((found.into_key(wanted)?, ()));
        Self::find_with(module, uri, pin_provider, PublicObjects::has_key, select).map(|(key, ())| key)
    }

    fn find_with<T>(
        module: Arc<Pkcs11Module>,
        uri: &Pkcs11Uri,
        pin_provider: Arc<dyn PinProvider>,
        is_enough: impl FnOnce(&PublicObjects) -> bool,
        select: impl FnOnce(PublicObjects, &KeyFilter) -> Result<(PublicKey, T), SignError>,
    ) -> Result<(Self, T), SignError> {
        let wanted = KeyFilter::from_uri(uri);
        let (token, leased) = find_token(&module, uri, &wanted)?;
        let mut found = inventory::find_public_objects(&leased.session, &wanted)?;
        let mut state = SessionState::Closed;
        if !is_enough(&found) && token.needs_login {
            log_in(&leased.session, &token, &*pin_provider, LoginPurpose::Session)?;
            found = inventory::find_public_objects(&leased.session, &wanted)?;
            state = SessionState::Open(OpenSession::new(leased, &wanted, token.clone())?);
        }
        let (public_key, selected) = select(found, &wanted)?;
        let schemes = sign::schemes(public_key.algorithm(), &token.mechanisms);
        if schemes.is_empty() {
            let scheme = format!(
                "any TLS signature scheme: its token has no mechanism for {}",
                public_key.algorithm()
            );
            return Err(SignError::UnsupportedScheme { scheme });
        }
        // Pin this token, even if another matching one is plugged in later.
        let uri =
            Pkcs11Uri { serial: Some(token.serial.clone()), token: Some(token.label.clone()), ..uri.clone() };
        let key = Pkcs11Key {
            module,
            uri,
            wanted,
            label: token.label.clone(),
            public_key,
            schemes,
            pin_provider,
            state: Mutex::new(state),
        };
        Ok((key, selected))
    }

    /// The label of the token.
    pub fn token(&self) -> &str {
        &self.label
    }

    /// Logs in now rather than during a handshake.
    ///
    /// # Errors
    /// [`SignError`], as for a signature.
    // C842
    pub fn log_in(&self) -> Result<(), SignError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.ensure_open(&mut state).map(|_| ())
    }

    /// Returns the open session; opens one if needed.
    fn ensure_open<'a>(&self, state: &'a mut SessionState) -> Result<&'a OpenSession, SignError> {
        if let SessionState::Refused(error) = state {
            return Err(error.clone());
        }
        if !matches!(state, SessionState::Open(_)) {
            let reconnect = matches!(state, SessionState::Removed);
            match self.reopen(reconnect) {
                Ok(open) => *state = SessionState::Open(open),
                Err(error) => {
                    if let refused @ SessionState::Refused(_) = state_after(&error) {
                        *state = refused;
                    }
                    return Err(error);
                }
            }
        }
        match state {
            SessionState::Open(open) => Ok(open),
            _ => Err(SignError::Internal("the opened session is missing".to_owned())),
        }
    }

    fn reopen(&self, reconnect: bool) -> Result<OpenSession, SignError> {
        if reconnect {
            self.module.reinitialize_if_unused();
        }
        let (token, leased) = match find_token(&self.module, &self.uri, &self.wanted) {
            Err(SignError::NoDevice { .. }) if reconnect => return Err(self.removed()),
            found => found?,
        };
        if token.needs_login {
            let login = if reconnect { LoginPurpose::Reconnect } else { LoginPurpose::Session };
            log_in(&leased.session, &token, &*self.pin_provider, login)?;
        }
        OpenSession::new(leased, &self.wanted, token)
    }

    fn removed(&self) -> SignError {
        SignError::Removed { token: self.label.clone() }
    }

    /// Converts an error of a signature that needs its own login: the module may not support a login within it.
    fn context_login_error(&self, error: &Error) -> SignError {
        let Error::Pkcs11(code, _) = error else { return device_error(error) };
        match code {
            RvError::DeviceRemoved | RvError::TokenNotPresent | RvError::SessionHandleInvalid => {
                self.removed()
            }
            RvError::FunctionCanceled | RvError::FunctionRejected => SignError::UserCancelled,
            code => SignError::AlwaysAuthenticates { token: self.label.clone(), code: code_name(*code) },
        }
    }

    /// Converts an error of a signature and updates the session's state.
    fn interpret(&self, error: &Error, state: &mut SessionState) -> SignError {
        let Error::Pkcs11(code, _) = error else { return device_error(error) };
        match code {
            RvError::DeviceRemoved
            | RvError::TokenNotPresent
            | RvError::TokenNotRecognized
            | RvError::SessionHandleInvalid
            | RvError::SessionClosed
            | RvError::DeviceError => {
                *state = SessionState::Removed;
                self.removed()
            }
            // The object is gone but the session is valid: another token is in the slot, or the key was deleted. SoftHSM
            // reports a removed token this way, and some modules return a general error.
            RvError::KeyHandleInvalid | RvError::ObjectHandleInvalid | RvError::GeneralError => {
                *state = SessionState::Removed;
                match find_token(&self.module, &self.uri, &self.wanted) {
                    Err(SignError::NoDevice { .. }) => self.removed(),
                    _ if *code == RvError::GeneralError => device_error(error),
                    _ => self.removed(),
                }
            }
            RvError::UserNotLoggedIn => {
                *state = SessionState::Closed;
                self.context_login_error(error)
            }
            RvError::FunctionCanceled | RvError::FunctionRejected => SignError::UserCancelled,
            _ => device_error(error),
        }
    }
}

impl Key for Pkcs11Key {
    fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    fn schemes(&self) -> &[Scheme] {
        &self.schemes
    }

    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        if !self.schemes.contains(&scheme) {
            return Err(SignError::UnsupportedScheme { scheme: scheme.to_string() });
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.ensure_open(&mut state)?;
        let (session, available) = (&open.leased.session, &open.token.mechanisms);
        if open.always_authenticate {
            let log_in = || log_in(session, &open.token, &*self.pin_provider, LoginPurpose::Signature);
            let signed = sign::sign_with_login(session, open.key, available, scheme, input, log_in);
            return signed
                .and_then(|signed| signed.map_err(|error| self.context_login_error(&error)))
                .inspect_err(|error| *state = state_after(error));
        }
        let signed = sign::sign(session, open.key, available, scheme, input)?;
        signed.map_err(|error| self.interpret(&error, &mut state))
    }

    fn log_in(&self) -> Result<(), SignError> {
        Pkcs11Key::log_in(self)
    }
}

impl fmt::Debug for Pkcs11Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pkcs11Key")
            .field("token", &self.label)
            .field("algorithm", &self.public_key.algorithm())
            .finish_non_exhaustive()
    }
}

/// Finds the matching token and opens a session. If several match, selects the one that has the object.
pub(super) fn find_token(
    module: &Arc<Pkcs11Module>,
    uri: &Pkcs11Uri,
    wanted: &KeyFilter,
) -> Result<(Pkcs11Token, LeasedSession), SignError> {
    let mut matching: Vec<Pkcs11Token> =
        module.tokens()?.into_iter().filter(|token| token.matches(uri)).collect();
    if matching.is_empty() {
        return Err(SignError::NoDevice { wanted: describe(uri) });
    }
    if matching.len() > 1 {
        let has = |token: &Pkcs11Token| {
            module.session(token).is_ok_and(|leased| inventory::has_match(&leased.session, wanted))
        };
        let with_object: Vec<Pkcs11Token> = matching.iter().filter(|token| has(token)).cloned().collect();
        if with_object.len() != 1 {
            return Err(SignError::Ambiguous { what: "tokens", count: matching.len() });
        }
        matching = with_object;
    }
    let token = matching.pop().ok_or_else(|| SignError::NoDevice { wanted: describe(uri) })?;
    let leased = module.session(&token)?;
    Ok((token, leased))
}

fn describe(uri: &Pkcs11Uri) -> String {
    let parts = [
        uri.token.as_ref().map(|label| format!("`{label}`")),
        uri.serial.as_ref().map(|serial| format!("with serial number `{serial}`")),
        uri.slot_id.map(|number| format!("in slot {number}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "any token".to_owned() } else { parts.join(" ") }
}

/// The state after a failure: a rejected PIN is not tried again, and the session of an unfinished signature is closed.
fn state_after(error: &SignError) -> SessionState {
    match error {
        SignError::PinIncorrect { .. } | SignError::PinLocked { .. } => SessionState::Refused(error.clone()),
        SignError::Removed { .. } => SessionState::Removed,
        _ => SessionState::Closed,
    }
}

/// Logs in with exactly one attempt: devices lock after a few failed ones. Asks for no PIN if another session of this process
/// is logged in: a login holds for all sessions with the token.
pub(super) fn log_in(
    session: &Session,
    token: &Pkcs11Token,
    pin_provider: &dyn PinProvider,
    login: LoginPurpose,
) -> Result<(), SignError> {
    let label = || token.label.clone();
    let user = if login == LoginPurpose::Signature { UserType::ContextSpecific } else { UserType::User };
    if login == LoginPurpose::Session && is_logged_in(session) {
        return Ok(());
    }
    if token.pin == PinState::Locked {
        return Err(SignError::PinLocked { token: label() });
    }
    let logged_in = if token.has_pin_pad {
        session.login(user, None)
    } else {
        if pin_provider.is_stored() && token.pin != PinState::Fine {
            return Err(SignError::PinCountLow { token: label() });
        }
        let prompt = PinPrompt { token: label(), last_try: token.pin == PinState::LastTry };
        let pin = pin_provider.request_pin(&prompt).map_err(|source| match login {
            LoginPurpose::Reconnect => SignError::Reinserted { token: label(), source },
            LoginPurpose::Session | LoginPurpose::Signature => {
                SignError::PinNeeded { token: label(), source }
            }
        })?;
        let pin = AuthPin::from(pin.expose().as_str());
        session.login(user, Some(&pin))
    };
    match logged_in {
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
        Err(Error::Pkcs11(code, function)) => Err(match code {
            RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange => {
                SignError::PinIncorrect { token: label() }
            }
            RvError::PinLocked => SignError::PinLocked { token: label() },
            RvError::FunctionCanceled | RvError::FunctionRejected => SignError::UserCancelled,
            RvError::TokenNotPresent | RvError::DeviceRemoved => SignError::Removed { token: label() },
            code => device_error(&Error::Pkcs11(code, function)),
        }),
        Err(error) => Err(device_error(&error)),
    }
}

fn is_logged_in(session: &Session) -> bool {
    use cryptoki::session::SessionState::{RoUser, RwUser};
    session.get_session_info().is_ok_and(|facts| matches!(facts.session_state(), RoUser | RwUser))
}

fn private_key(session: &Session, wanted: &KeyFilter) -> Result<ObjectHandle, SignError> {
    let template = wanted.template(ObjectClass::PRIVATE_KEY, Some(Attribute::Sign(true)));
    let found = session.find_objects(&template).map_err(|error| device_error(&error))?;
    match found.as_slice() {
        [key] => Ok(*key),
        [] => Err(SignError::NoKey { wanted: wanted.describe() }),
        several => Err(SignError::Ambiguous { what: "keys", count: several.len() }),
    }
}
