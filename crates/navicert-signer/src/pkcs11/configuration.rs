//! From the flat map of a kubeconfig to a key: the KEP's `pathLib`, `slotId`, `objectId`, `pin` (client-credentials.md
//! C811), or our `uri`, which says the same in one line and more exactly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use thiserror::Error;

use super::uri::{Uri, UriError};

/// Which key, in which module.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The shared library.
    pub module: PathBuf,
    /// Which token and object.
    pub uri: Uri,
    /// A PIN that came with the configuration, where somebody allowed that (X2).
    pub pin: Option<Secret<String>>,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// No module anywhere.
    #[error(
        "no PKCS#11 module: set `pathLib` (or `module-path` in `uri`), or NAVICERT_PKCS11_MODULE on this machine"
    )]
    NoModule,
    /// Two modules.
    #[error("`pathLib` and the `module-path` of `uri` name different modules")]
    TwoModules,
    /// A module that depends on where one stands.
    #[error("the PKCS#11 module `{0}` must be an absolute path")]
    RelativeModule(String),
    /// Something the KEP demands is missing.
    #[error("`{0}` is missing (or give a `uri` instead of `slotId` and `objectId`)")]
    Missing(&'static str),
    /// Both ways to say it.
    #[error("`uri` says which key is meant; remove `{0}`")]
    Twice(&'static str),
    /// A number that is none.
    #[error("`slotId` must be a decimal number")]
    SlotId,
    /// An identifier that is none.
    #[error("`objectId` must be a number up to 255, or `0x` and an even number of hexadecimal digits")]
    ObjectId,
    /// The URI cannot be read.
    #[error("`uri` cannot be read")]
    Uri(#[source] UriError),
}

impl Selection {
    /// Reads a configuration. `default_module` is this machine's own, for kubeconfigs that name none (X3).
    ///
    /// # Errors
    /// [`ConfigurationError`].
    pub fn read(
        configuration: &BTreeMap<String, String>,
        default_module: Option<&Path>,
    ) -> Result<Self, ConfigurationError> {
        let value =
            |name: &str| configuration.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let uri = match value("uri") {
            Some(text) => {
                for name in ["slotId", "objectId"] {
                    if value(name).is_some() {
                        return Err(ConfigurationError::Twice(name));
                    }
                }
                text.parse::<Uri>().map_err(ConfigurationError::Uri)?
            }
            None => Uri {
                slot_id: Some(slot_id(value("slotId").ok_or(ConfigurationError::Missing("slotId"))?)?),
                id: Some(object_id(value("objectId").ok_or(ConfigurationError::Missing("objectId"))?)?),
                ..Uri::default()
            },
        };
        let module = match (value("pathLib"), uri.module_path.as_deref()) {
            (Some(one), Some(other)) if one != other => return Err(ConfigurationError::TwoModules),
            (Some(path), _) | (None, Some(path)) => PathBuf::from(path),
            (None, None) => default_module.ok_or(ConfigurationError::NoModule)?.to_owned(),
        };
        if !module.is_absolute() {
            return Err(ConfigurationError::RelativeModule(module.display().to_string()));
        }
        Ok(Selection { module, uri, pin: value("pin").map(|pin| Secret::new(pin.to_owned())) })
    }

    /// The module a configuration names itself, for a policy to look at (X3). A `uri` that cannot be read names none:
    /// the signer will refuse it.
    pub fn named_module(configuration: &BTreeMap<String, String>) -> Vec<String> {
        let of_uri = configuration.get("uri").and_then(|text| text.parse::<Uri>().ok()?.module_path);
        let named = configuration.get("pathLib").cloned().into_iter().chain(of_uri);
        let mut named: Vec<String> = named.filter(|path| !path.is_empty()).collect();
        named.dedup();
        named
    }
}

fn slot_id(text: &str) -> Result<u64, ConfigurationError> {
    if !text.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err(ConfigurationError::SlotId);
    }
    text.parse().map_err(|_| ConfigurationError::SlotId)
}

/// The prototype writes one octet as a number: `10` is the octet 0x0A. Longer identifiers are hexadecimal and say so.
fn object_id(text: &str) -> Result<Vec<u8>, ConfigurationError> {
    if let Some(digits) = text.strip_prefix("0x") {
        let digit = |octet: &u8| u8::try_from(char::from(*octet).to_digit(16)?).ok();
        let digits: Option<Vec<u8>> = digits.as_bytes().iter().map(digit).collect();
        let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0);
        let pair = |pair: &[u8]| pair.iter().fold(0, |sum, digit| sum << 4 | digit);
        return digits.map(|digits| digits.chunks(2).map(pair).collect()).ok_or(ConfigurationError::ObjectId);
    }
    if !text.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err(ConfigurationError::ObjectId);
    }
    text.parse().map(|octet| vec![octet]).map_err(|_| ConfigurationError::ObjectId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_keps_four_keys_name_a_key() {
        // C811
        let given = map(&[("pathLib", "/l.so"), ("slotId", "7"), ("objectId", "10"), ("pin", "canary")]);
        let selection = Selection::read(&given, None).unwrap();
        assert_eq!(selection.module, Path::new("/l.so"));
        assert_eq!((selection.uri.slot_id, selection.uri.id.as_deref()), (Some(7), Some(&[10][..])));
        assert_eq!(selection.pin.as_ref().unwrap().expose(), "canary");
        assert!(!format!("{selection:?}").contains("canary"));
        let long = map(&[("pathLib", "/l.so"), ("slotId", "0"), ("objectId", "0x01aBff")]);
        assert_eq!(Selection::read(&long, None).unwrap().uri.id.unwrap(), [1, 0xab, 0xff]);
    }

    #[test]
    fn a_uri_says_it_in_one_line_and_the_machine_may_know_the_module() {
        let given = map(&[("uri", "pkcs11:token=t?module-path=/m.so")]);
        assert_eq!(Selection::read(&given, None).unwrap().module, Path::new("/m.so"));
        let given = map(&[("uri", "pkcs11:token=t")]);
        assert_eq!(Selection::read(&given, Some(Path::new("/own.so"))).unwrap().module, Path::new("/own.so"));
        assert_eq!(Selection::named_module(&given), Vec::<String>::new());
        let both = map(&[("uri", "pkcs11:?module-path=/m.so"), ("pathLib", "/m.so")]);
        assert_eq!(Selection::named_module(&both), ["/m.so"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("slotId", "0"), ("objectId", "1")], "no PKCS#11 module"),
            (&[("pathLib", "l.so"), ("slotId", "0"), ("objectId", "1")], "absolute path"),
            (&[("pathLib", "/l"), ("objectId", "1")], "`slotId` is missing"),
            (&[("pathLib", "/l"), ("slotId", "0")], "`objectId` is missing"),
            (&[("pathLib", "/l"), ("slotId", "-1"), ("objectId", "1")], "`slotId` must be"),
            (&[("pathLib", "/l"), ("slotId", "1"), ("objectId", "256")], "`objectId` must be"),
            (&[("pathLib", "/l"), ("uri", "pkcs11:?module-path=/m")], "different modules"),
            (&[("uri", "pkcs11:token=a"), ("slotId", "1")], "remove `slotId`"),
        ];
        for (given, message) in cases {
            let error = Selection::read(&map(given), None).unwrap_err().to_string();
            assert!(error.contains(message), "{given:?}: {error}");
        }
    }
}
