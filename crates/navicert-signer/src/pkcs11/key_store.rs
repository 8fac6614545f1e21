//! The keys of the PKCS#11 signer by configuration. Each key is opened once and kept until the process ends.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use navicert_types::error_chain;
use navicert_types::external_signer::SignerConfiguration;

use super::configuration::KeySelection;
use super::session::{Pkcs11Key, open};
use crate::error::SignError;
use crate::identity::SigningIdentity;
use crate::pin::PinProvider;
use crate::remote::KeyStore;

/// Chooses the PIN provider of a key. The second argument says whether the user can be prompted on the terminal.
pub type PinProviderFactory =
    Arc<dyn Fn(&KeySelection, bool) -> Result<Arc<dyn PinProvider>, SignError> + Send + Sync>;

/// A [`KeyStore`] of PKCS#11 modules.
pub struct Pkcs11KeyStore {
    default_module: Option<PathBuf>,
    pin_provider: PinProviderFactory,
    opened: Mutex<BTreeMap<String, Arc<SigningIdentity>>>,
    served: Option<Vec<ServedKey>>,
}

struct ServedKey {
    selection: KeySelection,
    identity: Arc<SigningIdentity>,
}

impl Pkcs11KeyStore {
    /// Opens keys on request.
    pub fn new(default_module: Option<PathBuf>, pin_provider: PinProviderFactory) -> Self {
        Pkcs11KeyStore { default_module, pin_provider, opened: Mutex::default(), served: None }
    }

    /// Opens these keys, logs in to each, and serves no other key: a request cannot make it load a module.
    ///
    /// # Errors
    /// [`SignError`] of the first key that cannot be opened.
    pub fn serving(
        selections: Vec<KeySelection>,
        default_module: Option<PathBuf>,
        pin_provider: PinProviderFactory,
    ) -> Result<Self, SignError> {
        let mut served = Vec::new();
        for selection in selections {
            let (identity, key) = open(&selection, pin_provider(&selection, true)?)?;
            Pkcs11Key::log_in(&key)?;
            served.push(ServedKey { selection, identity: Arc::new(identity) });
        }
        Ok(Pkcs11KeyStore { default_module, pin_provider, opened: Mutex::default(), served: Some(served) })
    }

    fn find_served(
        &self,
        served: &[ServedKey],
        selection: &KeySelection,
    ) -> Result<Arc<SigningIdentity>, SignError> {
        let same = |one: &&ServedKey| {
            let (mut a, mut b) = (one.selection.uri.clone(), selection.uri.clone());
            for uri in [&mut a, &mut b] {
                (uri.pin_source, uri.module_path) = (None, None);
            }
            one.selection.module == selection.module && a == b
        };
        if let Some(found) = served.iter().find(same) {
            return Ok(Arc::clone(&found.identity));
        }
        if !served.iter().any(|one| one.selection.module == selection.module) {
            return Err(SignError::NotServed);
        }
        // Two URIs may select the same key in different ways, so compare the public keys.
        let (identity, _) = open(selection, Arc::new(crate::pin::NoPin))?;
        let found = served.iter().find(|one| one.identity.public_key() == identity.public_key());
        found.map(|one| Arc::clone(&one.identity)).ok_or(SignError::NotServed)
    }
}

impl KeyStore for Pkcs11KeyStore {
    fn find(
        &self,
        configuration: &SignerConfiguration,
        interactive: bool,
    ) -> Result<Arc<SigningIdentity>, SignError> {
        let selection = KeySelection::read(&configuration.0, self.default_module.as_deref())
            .map_err(|error| SignError::Configuration { problem: error_chain(&error) })?;
        let key = configuration.identity();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = opened.get(&key) {
            return Ok(Arc::clone(identity));
        }
        let identity = match &self.served {
            Some(served) => self.find_served(served, &selection)?,
            None => Arc::new(open(&selection, (self.pin_provider)(&selection, interactive)?)?.0),
        };
        opened.insert(key, Arc::clone(&identity));
        Ok(identity)
    }
}

impl fmt::Debug for Pkcs11KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pkcs11KeyStore").field("default_module", &self.default_module).finish_non_exhaustive()
    }
}
