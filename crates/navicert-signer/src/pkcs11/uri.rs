//! `pkcs11:` URIs (RFC 7512): the token, the object, the module, and the location of the PIN.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A parsed `pkcs11:` URI. An attribute that is `None` matches everything.
///
/// ```
/// use navicert_signer::pkcs11::Pkcs11Uri;
///
/// let uri: Pkcs11Uri = "pkcs11:token=My%20Key;id=%01?module-path=/usr/lib/libykcs11.so".parse()?;
/// assert_eq!(uri.token.as_deref(), Some("My Key"));
/// assert_eq!(uri.id.as_deref(), Some(&[1][..]));
/// assert_eq!(uri.to_string(), "pkcs11:token=My%20Key;id=%01?module-path=/usr/lib/libykcs11.so");
/// # Ok::<(), navicert_signer::pkcs11::UriError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pkcs11Uri {
    /// The token's label.
    pub token: Option<String>,
    /// The token's manufacturer.
    pub manufacturer: Option<String>,
    /// The token's serial number.
    pub serial: Option<String>,
    /// The token's model.
    pub model: Option<String>,
    /// The module's manufacturer.
    pub library_manufacturer: Option<String>,
    /// The module's description.
    pub library_description: Option<String>,
    /// The module's version.
    pub library_version: Option<String>,
    /// The object's label (`CKA_LABEL`).
    pub object: Option<String>,
    /// The object's class.
    pub object_type: Option<ObjectType>,
    /// The object's identifier (`CKA_ID`).
    pub id: Option<Vec<u8>>,
    /// The slot's number.
    pub slot_id: Option<u64>,
    /// The slot's description.
    pub slot_description: Option<String>,
    /// The slot's manufacturer.
    pub slot_manufacturer: Option<String>,
    /// The location of the PIN; see [`PinFile`](crate::pin::PinFile).
    pub pin_source: Option<String>,
    /// The module's path.
    pub module_path: Option<String>,
    /// The module's name, for module directories.
    pub module_name: Option<String>,
}

/// The `type` of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectType {
    /// `cert`
    Certificate,
    /// `data`
    Data,
    /// `private`
    Private,
    /// `public`
    Public,
    /// `secret-key`
    SecretKey,
}

/// Why a URI is invalid. Messages never contain values: one of them may be a PIN.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriError {
    /// Another URI scheme.
    #[error("a PKCS#11 URI must begin with `pkcs11:`")]
    Scheme,
    /// A part without `=`.
    #[error("part {0} of the URI is not `name=value`")]
    NotAPair(usize),
    /// An unknown attribute.
    #[error("unknown PKCS#11 URI attribute `{0}`")]
    Unknown(String),
    /// A query attribute in the path.
    #[error("`{0}` must come after the `?`")]
    BelongsInQuery(&'static str),
    /// A duplicate attribute.
    #[error("duplicate attribute `{0}`")]
    Repeated(String),
    /// A `%` without two hexadecimal digits.
    #[error("invalid percent-encoding in the value of `{0}`")]
    Escape(String),
    /// A character that must be escaped.
    #[error("the value of `{name}` contains a character that must be escaped as `{written}`")]
    Character {
        /// The attribute.
        name: String,
        /// The escaped character.
        written: String,
    },
    /// Text that is not UTF-8.
    #[error("the value of `{0}` is not UTF-8")]
    NotText(String),
    /// An unknown `type`.
    #[error("`type` must be one of cert, data, private, public, secret-key")]
    Type,
    /// A `slot-id` that is not a number.
    #[error("`slot-id` must be a decimal number")]
    SlotId,
    /// A PIN in the URI: it would end up in histories, process lists and logs.
    #[error(
        "`pin-value` is not allowed: a PIN in a URI ends up in shell history and logs; use `pin-source=file:…`, or enter the PIN when prompted"
    )]
    PinValue,
}

impl FromStr for Pkcs11Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let rest = match text.split_once(':') {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("pkcs11") => rest,
            _ => return Err(UriError::Scheme),
        };
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let mut uri = Pkcs11Uri::default();
        let parts = path.split(';').map(|part| (part, Half::Path));
        let parts =
            parts.chain(query.into_iter().flat_map(|query| query.split('&')).map(|part| (part, Half::Query)));
        for (index, (part, half)) in parts.enumerate() {
            // `pkcs11:` without attributes and a trailing `;` are valid.
            if part.is_empty() {
                continue;
            }
            let (name, value) = part.split_once('=').ok_or(UriError::NotAPair(index.saturating_add(1)))?;
            match half {
                Half::Path => uri.set_path(name, value)?,
                Half::Query => uri.set_query(name, value)?,
            }
        }
        Ok(uri)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Path,
    Query,
}

impl Pkcs11Uri {
    fn set_path(&mut self, name: &str, value: &str) -> Result<(), UriError> {
        let text = || text(name, value, Half::Path);
        match name {
            "token" => set(name, &mut self.token, text()?),
            "manufacturer" => set(name, &mut self.manufacturer, text()?),
            "serial" => set(name, &mut self.serial, text()?),
            "model" => set(name, &mut self.model, text()?),
            "library-manufacturer" => set(name, &mut self.library_manufacturer, text()?),
            "library-description" => set(name, &mut self.library_description, text()?),
            "library-version" => set(name, &mut self.library_version, text()?),
            "object" => set(name, &mut self.object, text()?),
            "slot-description" => set(name, &mut self.slot_description, text()?),
            "slot-manufacturer" => set(name, &mut self.slot_manufacturer, text()?),
            "id" => set(name, &mut self.id, octets(name, value, Half::Path)?),
            "type" => set(name, &mut self.object_type, ObjectType::by_name(value).ok_or(UriError::Type)?),
            "slot-id" => {
                let is_number = !value.is_empty() && value.bytes().all(|octet| octet.is_ascii_digit());
                let number = value.parse().ok().filter(|_| is_number).ok_or(UriError::SlotId)?;
                set(name, &mut self.slot_id, number)
            }
            "pin-value" => Err(UriError::PinValue),
            "pin-source" => Err(UriError::BelongsInQuery("pin-source")),
            "module-path" => Err(UriError::BelongsInQuery("module-path")),
            "module-name" => Err(UriError::BelongsInQuery("module-name")),
            _ => Err(UriError::Unknown(name.to_owned())),
        }
    }

    /// Ignores unknown attributes: RFC 7512 allows vendor attributes in the query.
    fn set_query(&mut self, name: &str, value: &str) -> Result<(), UriError> {
        let text = || text(name, value, Half::Query);
        match name {
            "pin-source" => set(name, &mut self.pin_source, text()?),
            "module-path" => set(name, &mut self.module_path, text()?),
            "module-name" => set(name, &mut self.module_name, text()?),
            "pin-value" => Err(UriError::PinValue),
            _ => Ok(()),
        }
    }
}

fn set<T>(name: &str, target: &mut Option<T>, value: T) -> Result<(), UriError> {
    if target.replace(value).is_some() {
        return Err(UriError::Repeated(name.to_owned()));
    }
    Ok(())
}

fn text(name: &str, value: &str, half: Half) -> Result<String, UriError> {
    String::from_utf8(octets(name, value, half)?).map_err(|_| UriError::NotText(name.to_owned()))
}

fn octets(name: &str, value: &str, half: Half) -> Result<Vec<u8>, UriError> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(octet) = rest.next() {
        if octet == b'%' {
            let digit = |octet: Option<u8>| u8::try_from(char::from(octet?).to_digit(16)?).ok();
            match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => decoded.push(high << 4 | low),
                _ => return Err(UriError::Escape(name.to_owned())),
            }
        } else if is_allowed(octet, half) {
            decoded.push(octet);
        } else {
            return Err(UriError::Character { name: name.to_owned(), written: format!("%{octet:02X}") });
        }
    }
    Ok(decoded)
}

/// Whether RFC 7512, section 2.3, allows the byte unescaped: `unreserved`, `pk11-res-avail`, and a few more in each half.
fn is_allowed(octet: u8, half: Half) -> bool {
    octet.is_ascii_alphanumeric()
        || b"-._~:[]@!$'()*+,=".contains(&octet)
        || match half {
            Half::Path => octet == b'&',
            Half::Query => b"/?|".contains(&octet),
        }
}

impl fmt::Display for Pkcs11Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot_id = self.slot_id.map(|number| number.to_string());
        let path: [(&str, Option<&str>); 10] = [
            ("library-manufacturer", self.library_manufacturer.as_deref()),
            ("library-description", self.library_description.as_deref()),
            ("library-version", self.library_version.as_deref()),
            ("slot-id", slot_id.as_deref()),
            ("slot-description", self.slot_description.as_deref()),
            ("slot-manufacturer", self.slot_manufacturer.as_deref()),
            ("model", self.model.as_deref()),
            ("manufacturer", self.manufacturer.as_deref()),
            ("serial", self.serial.as_deref()),
            ("token", self.token.as_deref()),
        ];
        f.write_str("pkcs11:")?;
        let mut separator = "";
        let mut pair = |f: &mut fmt::Formatter<'_>, name: &str, value: &str| {
            let written = write!(f, "{separator}{name}={value}");
            separator = ";";
            written
        };
        for (name, value) in path.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            pair(f, name, &escaped(value.as_bytes(), Half::Path))?;
        }
        if let Some(id) = &self.id {
            let all: String = id.iter().map(|octet| format!("%{octet:02X}")).collect();
            pair(f, "id", &all)?;
        }
        if let Some(object) = &self.object {
            pair(f, "object", &escaped(object.as_bytes(), Half::Path))?;
        }
        if let Some(object_type) = self.object_type {
            pair(f, "type", object_type.name())?;
        }
        let query = [
            ("pin-source", &self.pin_source),
            ("module-name", &self.module_name),
            ("module-path", &self.module_path),
        ];
        let mut separator = "?";
        for (name, value) in query.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            write!(f, "{separator}{name}={}", escaped(value.as_bytes(), Half::Query))?;
            separator = "&";
        }
        Ok(())
    }
}

fn escaped(octets: &[u8], half: Half) -> String {
    let spell = |octet: &u8| match is_allowed(*octet, half) && *octet != b'=' {
        true => char::from(*octet).to_string(),
        false => format!("%{octet:02X}"),
    };
    octets.iter().map(spell).collect()
}

impl ObjectType {
    fn name(self) -> &'static str {
        match self {
            ObjectType::Certificate => "cert",
            ObjectType::Data => "data",
            ObjectType::Private => "private",
            ObjectType::Public => "public",
            ObjectType::SecretKey => "secret-key",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        use ObjectType::{Certificate, Data, Private, Public, SecretKey};
        [Certificate, Data, Private, Public, SecretKey].into_iter().find(|known| known.name() == name)
    }
}

#[cfg(test)]
mod tests;
