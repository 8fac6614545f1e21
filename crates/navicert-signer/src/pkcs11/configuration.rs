//! Reads a kubeconfig's signer configuration: the KEP's `pathLib`, `slotId`, `objectId` and `pin`, or navicert's `uri`,
//! which identifies the key in one line.
// C811

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use thiserror::Error;

use super::uri::{Pkcs11Uri, UriError};

/// Identifies a key and its module.
#[derive(Clone, Debug)]
pub struct KeySelection {
    /// The shared library.
    pub module: PathBuf,
    /// The token and object.
    pub uri: Pkcs11Uri,
    /// The PIN of the configuration, where the application allows that.
    // X2
    pub pin: Option<Secret<String>>,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// Neither the configuration nor the environment names a module.
    #[error(
        "missing PKCS#11 module: set `pathLib` (or `module-path` in `uri`), or NAVICERT_PKCS11_MODULE on this machine"
    )]
    NoModule,
    /// The configuration names two modules.
    #[error("`pathLib` and the `module-path` of `uri` name different modules")]
    TwoModules,
    /// The module's path is relative.
    #[error("invalid PKCS#11 module `{0}`: expected an absolute path")]
    RelativeModule(String),
    /// A required setting is missing.
    #[error("missing `{0}` (or set `uri` instead of `slotId` and `objectId`)")]
    Missing(&'static str),
    /// The key is selected twice.
    #[error("`uri` already selects the key; remove `{0}`")]
    Twice(&'static str),
    /// The slot is not a number.
    #[error("invalid `slotId`: expected a decimal number")]
    SlotId,
    /// The object identifier is malformed.
    #[error(
        "invalid `objectId`: expected a number up to 255, or `0x` and an even number of hexadecimal digits"
    )]
    ObjectId,
    /// The URI is malformed.
    #[error("invalid `uri`")]
    Uri(#[source] UriError),
}

impl KeySelection {
    /// Parses a configuration. `default_module` is used if the kubeconfig names none.
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
                text.parse::<Pkcs11Uri>().map_err(ConfigurationError::Uri)?
            }
            None => Pkcs11Uri {
                slot_id: Some(slot_id(value("slotId").ok_or(ConfigurationError::Missing("slotId"))?)?),
                id: Some(object_id(value("objectId").ok_or(ConfigurationError::Missing("objectId"))?)?),
                ..Pkcs11Uri::default()
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
        Ok(KeySelection { module, uri, pin: value("pin").map(|pin| Secret::new(pin.to_owned())) })
    }

    /// The modules a configuration names, for the plugin policy. An invalid `uri` names none: the signer will reject it.
    // X3
    pub fn named_module(configuration: &BTreeMap<String, String>) -> Vec<String> {
        let of_uri = configuration.get("uri").and_then(|text| text.parse::<Pkcs11Uri>().ok()?.module_path);
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

/// The prototype writes a one-byte identifier as a decimal number: `10` is 0x0A. Longer identifiers are hexadecimal with
/// the prefix `0x`.
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
    fn reads_the_four_settings_of_the_kep() {
        // C811
        let given = map(&[("pathLib", "/l.so"), ("slotId", "7"), ("objectId", "10"), ("pin", "canary")]);
        let selection = KeySelection::read(&given, None).unwrap();
        assert_eq!(selection.module, Path::new("/l.so"));
        assert_eq!((selection.uri.slot_id, selection.uri.id.as_deref()), (Some(7), Some(&[10][..])));
        assert_eq!(selection.pin.as_ref().unwrap().expose(), "canary");
        assert!(!format!("{selection:?}").contains("canary"));
        let long = map(&[("pathLib", "/l.so"), ("slotId", "0"), ("objectId", "0x01aBff")]);
        assert_eq!(KeySelection::read(&long, None).unwrap().uri.id.unwrap(), [1, 0xab, 0xff]);
    }

    #[test]
    fn reads_uri_and_falls_back_to_default_module() {
        let given = map(&[("uri", "pkcs11:token=t?module-path=/m.so")]);
        assert_eq!(KeySelection::read(&given, None).unwrap().module, Path::new("/m.so"));
        let given = map(&[("uri", "pkcs11:token=t")]);
        assert_eq!(
            KeySelection::read(&given, Some(Path::new("/own.so"))).unwrap().module,
            Path::new("/own.so")
        );
        assert_eq!(KeySelection::named_module(&given), Vec::<String>::new());
        let both = map(&[("uri", "pkcs11:?module-path=/m.so"), ("pathLib", "/m.so")]);
        assert_eq!(KeySelection::named_module(&both), ["/m.so"]);
    }

    #[test]
    fn errors_name_the_invalid_setting() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("slotId", "0"), ("objectId", "1")], "missing PKCS#11 module"),
            (&[("pathLib", "l.so"), ("slotId", "0"), ("objectId", "1")], "absolute path"),
            (&[("pathLib", "/l"), ("objectId", "1")], "missing `slotId`"),
            (&[("pathLib", "/l"), ("slotId", "0")], "missing `objectId`"),
            (&[("pathLib", "/l"), ("slotId", "-1"), ("objectId", "1")], "invalid `slotId`"),
            (&[("pathLib", "/l"), ("slotId", "1"), ("objectId", "256")], "invalid `objectId`"),
            (&[("pathLib", "/l"), ("uri", "pkcs11:?module-path=/m")], "different modules"),
            (&[("uri", "pkcs11:token=a"), ("slotId", "1")], "remove `slotId`"),
        ];
        for (given, message) in cases {
            let error = KeySelection::read(&map(given), None).unwrap_err().to_string();
            assert!(error.contains(message), "{given:?}: {error}");
        }
    }
}
