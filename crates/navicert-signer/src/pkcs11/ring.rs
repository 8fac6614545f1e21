//! The PKCS#11 signer's keys, by what a configuration says: each is opened once and kept as long as the process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use navicert_types::external_signer::Configuration;

use super::configuration::Selection;
use super::session::{Pkcs11Key, open};
use crate::error::SignError;
use crate::identity::Identity;
use crate::pin::AskPin;
use crate::remote::KeyRing;

/// Who is asked for the PIN of a key; the second value says whether there is a user at the terminal.
pub type ChooseAsk = Arc<dyn Fn(&Selection, bool) -> Result<Arc<dyn AskPin>, SignError> + Send + Sync>;

/// Keys of PKCS#11 modules.
pub struct Pkcs11Ring {
    default_module: Option<PathBuf>,
    choose: ChooseAsk,
    opened: Mutex<BTreeMap<String, Arc<Identity>>>,
    served: Option<Vec<Served>>,
}

struct Served {
    selection: Selection,
    identity: Arc<Identity>,
}

impl Pkcs11Ring {
    /// Opens what it is asked for.
    pub fn new(default_module: Option<PathBuf>, choose: ChooseAsk) -> Self {
        Pkcs11Ring { default_module, choose, opened: Mutex::default(), served: None }
    }

    /// Has exactly these keys, logs in to each now, and serves no others: a question cannot make it load a module.
    ///
    /// # Errors
    /// [`SignError`] of the first one that cannot be opened.
    pub fn serving(
        selections: Vec<Selection>,
        default_module: Option<PathBuf>,
        choose: ChooseAsk,
    ) -> Result<Self, SignError> {
        let mut served = Vec::new();
        for selection in selections {
            let (identity, key) = open(&selection, choose(&selection, true)?)?;
            Pkcs11Key::log_in(&key)?;
            served.push(Served { selection, identity: Arc::new(identity) });
        }
        Ok(Pkcs11Ring { default_module, choose, opened: Mutex::default(), served: Some(served) })
    }

    fn of_served(&self, served: &[Served], selection: &Selection) -> Result<Arc<Identity>, SignError> {
        let same = |one: &&Served| {
            let (mut a, mut b) = (one.selection.uri.clone(), selection.uri.clone());
            for uri in [&mut a, &mut b] {
                (uri.pin_source, uri.module_path) = (None, None);
            }
            one.selection.module == selection.module && a == b
        };
        if let Some(found) = served.iter().find(same) {
            return Ok(Arc::clone(&found.identity));
        }
        let nothing = || SignError::NoObject { wanted: "such key is served here".to_owned() };
        if !served.iter().any(|one| one.selection.module == selection.module) {
            return Err(nothing());
        }
        // Said in other words: what they lead to is compared.
        let (identity, _) = open(selection, Arc::new(crate::pin::Nobody))?;
        let found = served.iter().find(|one| one.identity.public_key() == identity.public_key());
        found.map(|one| Arc::clone(&one.identity)).ok_or_else(nothing)
    }
}

impl KeyRing for Pkcs11Ring {
    fn find(&self, configuration: &Configuration, interactive: bool) -> Result<Arc<Identity>, SignError> {
        let selection =
            Selection::read(&configuration.0, self.default_module.as_deref()).map_err(|error| {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                SignError::NoObject {
                    wanted: format!("usable configuration: {error}{}", source.unwrap_or_default()),
                }
            })?;
        let key = configuration.identity();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = opened.get(&key) {
            return Ok(Arc::clone(identity));
        }
        let identity = match &self.served {
            Some(served) => self.of_served(served, &selection)?,
            None => Arc::new(open(&selection, (self.choose)(&selection, interactive)?)?.0),
        };
        opened.insert(key, Arc::clone(&identity));
        Ok(identity)
    }
}

impl fmt::Debug for Pkcs11Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pkcs11Ring").field("default_module", &self.default_module).finish_non_exhaustive()
    }
}
