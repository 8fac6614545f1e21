//! One key of one token: found without a PIN where possible, logged in to once, used by many threads in turn, and found
//! again when the device was taken out and put back.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki::error::{Error, RvError};
use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use rustls_pki_types::CertificateDer;

use super::configuration::Selection;
use super::inventory::{self, Wanted};
use super::module::{Leased, Module, PinState, Token, code_name, device};
use super::sign;
use super::uri::Uri;
use crate::error::SignError;
use crate::identity::Identity;
use crate::key::Key;
use crate::pin::{AskPin, Question};
use crate::public_key::PublicKey;
use crate::scheme::{Input, Scheme};

/// Finds the key and its certificates. The PIN is not asked for yet, unless the token shows nothing without it:
/// [`Pkcs11Key::log_in`] does that, or the first signature.
///
/// # Errors
/// [`SignError`]: no such token or key, or several; or the certificate is for another key.
pub fn open(selection: &Selection, ask: Arc<dyn AskPin>) -> Result<(Identity, Arc<Pkcs11Key>), SignError> {
    let module = Module::load(&selection.module)?;
    let (key, chain) = Pkcs11Key::find(module, &selection.uri, ask)?;
    let key = Arc::new(key);
    let identity = Identity::new(chain, Arc::clone(&key) as Arc<dyn Key>)
        .map_err(|error| SignError::NoObject { wanted: format!("usable certificate ({error})") })?;
    Ok((identity, key))
}

/// A key in a token.
pub struct Pkcs11Key {
    module: Arc<Module>,
    uri: Uri,
    wanted: Wanted,
    label: String,
    public_key: PublicKey,
    schemes: Vec<Scheme>,
    ask: Arc<dyn AskPin>,
    state: Mutex<State>,
}

/// How far it has come.
enum State {
    /// Not logged in yet.
    Closed,
    /// Ready to sign.
    Open(Open),
    /// The device went away under us.
    Gone,
    /// The device refused the PIN: it is not asked for again by this process.
    Refused(SignError),
}

struct Open {
    leased: Leased,
    key: ObjectHandle,
    token: Token,
    /// Whether the key wants its PIN for every signature (PIV slot 9c does).
    always: bool,
}

impl Open {
    /// A session that is logged in, and its key.
    fn new(leased: Leased, wanted: &Wanted, token: Token) -> Result<Self, SignError> {
        let key = private_key(&leased.session, wanted)?;
        let asked = leased.session.get_attributes(key, &[AttributeType::AlwaysAuthenticate]);
        let always = asked.is_ok_and(|values| values.contains(&Attribute::AlwaysAuthenticate(true)));
        Ok(Open { leased, key, token, always })
    }
}

/// What a login is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Login {
    /// A session.
    Session,
    /// A session with a device that was away.
    Again,
    /// One signature, which has begun.
    Signature,
}

impl Pkcs11Key {
    fn find(
        module: Arc<Module>,
        uri: &Uri,
        ask: Arc<dyn AskPin>,
    ) -> Result<(Self, Vec<CertificateDer<'static>>), SignError> {
        let wanted = Wanted::of(uri);
        let (token, leased) = find_token(&module, uri, &wanted)?;
        let mut found = inventory::public_half(&leased.session, &wanted)?;
        let mut state = State::Closed;
        if !found.is_complete() && token.needs_login {
            log_in(&leased.session, &token, &*ask, Login::Session)?;
            found = inventory::public_half(&leased.session, &wanted)?;
            state = State::Open(Open::new(leased, &wanted, token.clone())?);
        }
        let (public_key, chain) = found.take(&wanted)?;
        let schemes = sign::schemes(public_key.algorithm(), &token.mechanisms);
        if schemes.is_empty() {
            let scheme =
                format!("anything TLS knows: its token has no mechanism for {}", public_key.algorithm());
            return Err(SignError::UnsupportedScheme { scheme });
        }
        // From here on exactly this token is meant, even if another one that fits is plugged in.
        let uri = Uri { serial: Some(token.serial.clone()), token: Some(token.label.clone()), ..uri.clone() };
        let key = Pkcs11Key {
            module,
            uri,
            wanted,
            label: token.label.clone(),
            public_key,
            schemes,
            ask,
            state: Mutex::new(state),
        };
        Ok((key, chain))
    }

    /// The token's label.
    pub fn token(&self) -> &str {
        &self.label
    }

    /// Asks for the PIN now rather than in the middle of a handshake (C842).
    ///
    /// # Errors
    /// [`SignError`]: as for a signature.
    pub fn log_in(&self) -> Result<(), SignError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.ready(&mut state).map(|_| ())
    }

    /// The open session; opens it if there is none.
    fn ready<'a>(&self, state: &'a mut State) -> Result<&'a Open, SignError> {
        if let State::Refused(error) = state {
            return Err(error.clone());
        }
        if !matches!(state, State::Open(_)) {
            let again = matches!(state, State::Gone);
            match self.reopen(again) {
                Ok(open) => *state = State::Open(open),
                Err(error) => {
                    if let refused @ State::Refused(_) = after(&error) {
                        *state = refused;
                    }
                    return Err(error);
                }
            }
        }
        match state {
            State::Open(open) => Ok(open),
            _ => Err(SignError::Internal("a session that was opened is not there".to_owned())),
        }
    }

    fn reopen(&self, again: bool) -> Result<Open, SignError> {
        if again {
            self.module.look_again();
        }
        let (token, leased) = match find_token(&self.module, &self.uri, &self.wanted) {
            Err(SignError::NoDevice { .. }) if again => return Err(self.removed()),
            found => found?,
        };
        if token.needs_login {
            let login = if again { Login::Again } else { Login::Session };
            log_in(&leased.session, &token, &*self.ask, login)?;
        }
        Open::new(leased, &self.wanted, token)
    }

    fn removed(&self) -> SignError {
        SignError::Removed { token: self.label.clone() }
    }

    /// A key that wants its PIN for every signature, and a module that does not take one in the middle.
    fn cannot_in_pieces(&self, error: &Error) -> SignError {
        let Error::Pkcs11(code, _) = error else { return device(error) };
        match code {
            RvError::DeviceRemoved | RvError::TokenNotPresent | RvError::SessionHandleInvalid => {
                self.removed()
            }
            RvError::FunctionCanceled | RvError::FunctionRejected => SignError::UserCancelled,
            code => SignError::AlwaysAuthenticates { token: self.label.clone(), code: code_name(*code) },
        }
    }

    /// What an error in the middle means for the session.
    fn interpret(&self, error: &Error, state: &mut State) -> SignError {
        let Error::Pkcs11(code, _) = error else { return device(error) };
        match code {
            RvError::DeviceRemoved
            | RvError::TokenNotPresent
            | RvError::TokenNotRecognized
            | RvError::SessionHandleInvalid
            | RvError::SessionClosed
            | RvError::DeviceError => {
                *state = State::Gone;
                self.removed()
            }
            // The object is gone and the session is not: another token in the same slot, or a key deleted. SoftHSM says
            // so too, and some modules report just anything.
            RvError::KeyHandleInvalid | RvError::ObjectHandleInvalid | RvError::GeneralError => {
                *state = State::Gone;
                match find_token(&self.module, &self.uri, &self.wanted) {
                    Err(SignError::NoDevice { .. }) => self.removed(),
                    Err(error @ SignError::NoObject { .. }) => error,
                    _ if *code == RvError::GeneralError => device(error),
                    _ => self.removed(),
                }
            }
            RvError::UserNotLoggedIn => {
                *state = State::Closed;
                self.cannot_in_pieces(error)
            }
            RvError::FunctionCanceled | RvError::FunctionRejected => SignError::UserCancelled,
            _ => device(error),
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
        let open = self.ready(&mut state)?;
        let (session, available) = (&open.leased.session, &open.token.mechanisms);
        if open.always {
            let log_in = || log_in(session, &open.token, &*self.ask, Login::Signature);
            let signed = sign::sign_with_login(session, open.key, available, scheme, input, log_in);
            return signed
                .and_then(|signed| signed.map_err(|error| self.cannot_in_pieces(&error)))
                .inspect_err(|error| *state = after(error));
        }
        let signed = sign::sign(session, open.key, available, scheme, input)?;
        signed.map_err(|error| self.interpret(&error, &mut state))
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

/// The one token that is meant, with a session. Of several that fit, the one that has the object.
fn find_token(module: &Arc<Module>, uri: &Uri, wanted: &Wanted) -> Result<(Token, Leased), SignError> {
    let mut fitting: Vec<Token> =
        module.tokens()?.into_iter().filter(|token| token.is_meant_by(uri)).collect();
    if fitting.is_empty() {
        return Err(SignError::NoDevice { wanted: describe(uri) });
    }
    if fitting.len() > 1 {
        let has = |token: &Token| {
            module.session(token).is_ok_and(|leased| inventory::is_there(&leased.session, wanted))
        };
        let with_object: Vec<Token> = fitting.iter().filter(|token| has(token)).cloned().collect();
        if with_object.len() != 1 {
            return Err(SignError::Ambiguous { what: "tokens", count: fitting.len() });
        }
        fitting = with_object;
    }
    let token = fitting.pop().ok_or_else(|| SignError::NoDevice { wanted: describe(uri) })?;
    let leased = module.session(&token)?;
    Ok((token, leased))
}

fn describe(uri: &Uri) -> String {
    let parts = [
        uri.token.as_ref().map(|label| format!("`{label}`")),
        uri.serial.as_ref().map(|serial| format!("with serial number `{serial}`")),
        uri.slot_id.map(|number| format!("in slot {number}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "at all".to_owned() } else { parts.join(" ") }
}

/// Where a failure leaves a key: what the device refused is not tried again, and a signature that was begun is given up
/// with its session.
fn after(error: &SignError) -> State {
    match error {
        SignError::PinIncorrect { .. } | SignError::PinLocked { .. } => State::Refused(error.clone()),
        SignError::Removed { .. } => State::Gone,
        _ => State::Closed,
    }
}

/// One attempt, and never a second one: devices count.
fn log_in(session: &Session, token: &Token, ask: &dyn AskPin, login: Login) -> Result<(), SignError> {
    let label = || token.label.clone();
    let user = if login == Login::Signature { UserType::ContextSpecific } else { UserType::User };
    if token.pin == PinState::Locked {
        return Err(SignError::PinLocked { token: label() });
    }
    let logged_in = if token.has_pin_pad {
        session.login(user, None)
    } else {
        if ask.is_stored() && token.pin != PinState::Fine {
            return Err(SignError::PinCountLow { token: label() });
        }
        let question = Question { token: label(), last_try: token.pin == PinState::LastTry };
        let pin = ask.ask(&question).map_err(|source| match login {
            Login::Again => SignError::Reinserted { token: label(), source },
            Login::Session | Login::Signature => SignError::PinNeeded { token: label(), source },
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
            code => device(&Error::Pkcs11(code, function)),
        }),
        Err(error) => Err(device(&error)),
    }
}

fn private_key(session: &Session, wanted: &Wanted) -> Result<ObjectHandle, SignError> {
    let template = wanted.template(ObjectClass::PRIVATE_KEY, Some(Attribute::Sign(true)));
    let found = session.find_objects(&template).map_err(|error| device(&error))?;
    match found.as_slice() {
        [key] => Ok(*key),
        [] => Err(SignError::NoObject { wanted: format!("private key {}", wanted.describe()) }),
        several => Err(SignError::Ambiguous { what: "keys", count: several.len() }),
    }
}
