//! Modules, tokens and keys, with the kubeconfig lines to use them.

use std::fmt;
use std::sync::Arc;

use navicert_types::external_signer::PROVIDER;
use navicert_types::tree::{Mapping, Node, yaml_quoted};
use serde::Serialize;

use crate::error::SignError;
use crate::pkcs11::{FoundKey, PinState, Pkcs11Module, Pkcs11Token, Pkcs11Uri, inventory};
use crate::{KeyAlgorithm, PublicKey, Scheme};

/// The signer that kubeconfigs name for PKCS#11 keys.
pub const SIGNER_PROGRAM: &str = "navicert-signer-pkcs11";

/// The result of `signer list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListReport {
    /// The PKCS#11 modules.
    pub modules: Vec<ModuleReport>,
}

/// A PKCS#11 module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleReport {
    /// Its path.
    pub path: String,
    /// How it describes itself.
    pub description: String,
    /// Its tokens.
    pub tokens: Vec<TokenReport>,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenReport {
    /// The label.
    pub label: String,
    /// The manufacturer.
    pub manufacturer: String,
    /// The model.
    pub model: String,
    /// The serial number.
    pub serial: String,
    /// The slot number.
    pub slot_id: u64,
    /// Whether private keys require a login.
    pub needs_login: bool,
    /// The state of its PIN, in words.
    pub pin: &'static str,
    /// Its keys, as far as they are visible without the PIN.
    pub keys: Vec<KeyReport>,
}

/// A key of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyReport {
    /// The identifier, in hexadecimal digits.
    pub id: String,
    /// The label.
    pub label: String,
    /// Its algorithm; `null` if it is unknown.
    pub kind: Option<KeyAlgorithm>,
    /// The schemes it can sign with in TLS.
    pub schemes: Vec<Scheme>,
    /// Its certificate.
    pub certificate: Option<CertificateReport>,
    /// The URI that selects it (RFC 7512).
    pub uri: String,
    #[serde(skip)]
    module_path: String,
}

/// The certificate of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CertificateReport {
    /// Its subject.
    pub subject: String,
    /// The common name of its subject.
    pub common_name: String,
    /// When it expires (RFC 3339).
    pub not_after: String,
    /// Number of certificates in the chain.
    pub chain_length: usize,
}

impl ListReport {
    /// Adds a module and the keys of its tokens.
    ///
    /// # Errors
    /// A token cannot be read.
    pub fn add(&mut self, module: &Arc<Pkcs11Module>, tokens: &[Pkcs11Token]) -> Result<(), SignError> {
        let report = |token: &Pkcs11Token| Ok(TokenReport::new(token, &inventory(module, token)?));
        self.modules.push(ModuleReport {
            path: module.path().to_string_lossy().into_owned(),
            description: module.description(),
            tokens: tokens.iter().map(report).collect::<Result<_, SignError>>()?,
        });
        Ok(())
    }

    /// The keys that a URI selects, or all of them. Only those with a certificate can be used by a client.
    pub fn select(&self, uri: Option<&Pkcs11Uri>) -> Vec<&KeyReport> {
        let mut found = Vec::new();
        for module in &self.modules {
            for token in &module.tokens {
                let is_wanted =
                    |key: &&KeyReport| uri.is_none_or(|uri| is_selected(uri, &module.path, token, key));
                found.extend(token.keys.iter().filter(is_wanted));
            }
        }
        found
    }

    /// Whether a key was found.
    pub fn has_keys(&self) -> bool {
        self.modules.iter().flat_map(|module| &module.tokens).any(|token| !token.keys.is_empty())
    }
}

impl TokenReport {
    fn new(token: &Pkcs11Token, keys: &[FoundKey]) -> Self {
        TokenReport {
            label: token.label.clone(),
            manufacturer: token.manufacturer.clone(),
            model: token.model.clone(),
            serial: token.serial.clone(),
            slot_id: token.slot_id(),
            needs_login: token.needs_login,
            pin: pin(token),
            keys: keys.iter().map(KeyReport::from).collect(),
        }
    }
}

impl From<&FoundKey> for KeyReport {
    fn from(key: &FoundKey) -> Self {
        KeyReport {
            id: key.id.iter().map(|octet| format!("{octet:02x}")).collect(),
            label: key.label.clone(),
            kind: key.public_key.as_ref().map(PublicKey::algorithm),
            schemes: key.schemes.clone(),
            certificate: key.holder().map(|holder| CertificateReport {
                subject: holder.subject,
                common_name: holder.name,
                not_after: holder.not_after.to_string(),
                chain_length: key.chain.len(),
            }),
            uri: key.uri.to_string(),
            module_path: key.uri.module_path.clone().unwrap_or_default(),
        }
    }
}

/// Whether every attribute of the URI that the report knows is the key's.
fn is_selected(uri: &Pkcs11Uri, module: &str, token: &TokenReport, key: &KeyReport) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let id =
        |octets: &Vec<u8>| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>() == key.id;
    is(&uri.token, &token.label)
        && is(&uri.serial, &token.serial)
        && is(&uri.model, &token.model)
        && is(&uri.manufacturer, &token.manufacturer)
        && is(&uri.object, &key.label)
        && is(&uri.module_path, module)
        && uri.slot_id.is_none_or(|slot| slot == token.slot_id)
        && uri.id.as_ref().is_none_or(id)
}

impl KeyReport {
    /// The path of the module that it is found with.
    pub fn module_path(&self) -> &str {
        &self.module_path
    }

    /// The user of a kubeconfig that selects it by this URI.
    pub fn kubeconfig_user(uri: &str) -> Node {
        let mut config = Mapping::default();
        config.push("pathExec", SIGNER_PROGRAM);
        config.push("signerApiVersion", "v1");
        config.push("uri", uri);
        let mut provider = Mapping::default();
        provider.push("name", PROVIDER);
        provider.push("config", config);
        let mut user = Mapping::default();
        user.push("auth-provider", provider);
        Node::new(user)
    }
}

fn pin(token: &Pkcs11Token) -> &'static str {
    match token.pin {
        PinState::Locked => "locked",
        PinState::LastTry => "one attempt left before the token is locked",
        PinState::CountLow => "incorrect PIN entered since the last login",
        PinState::Fine if !token.needs_login => "not required",
        PinState::Fine if token.has_pin_pad => "entered at the device",
        PinState::Fine => "required to sign",
    }
}

impl fmt::Display for ListReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for module in &self.modules {
            for token in &module.tokens {
                token.write(f, module)?;
            }
        }
        if self.has_keys() {
            return Ok(());
        }
        let paths: Vec<&str> = self.modules.iter().map(|module| module.path.as_str()).collect();
        let searched = if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
        writeln!(f, "no key found (modules: {searched})")
    }
}

impl TokenReport {
    fn write(&self, f: &mut fmt::Formatter<'_>, module: &ModuleReport) -> fmt::Result {
        let TokenReport { label, manufacturer, model, serial, slot_id, pin, .. } = self;
        writeln!(f, "token   {label}")?;
        writeln!(f, "module  {} ({})", module.path, module.description)?;
        writeln!(f, "model   {manufacturer} {model}, serial number {serial}, slot {slot_id}")?;
        writeln!(f, "pin     {pin}")?;
        for key in &self.keys {
            write!(f, "{key}")?;
        }
        if self.keys.is_empty() {
            f.write_str("\n  no key is visible without the PIN\n")?;
        }
        writeln!(f)
    }
}

/// The key with the lines for a kubeconfig and a kuberc that select and allow it.
impl fmt::Display for KeyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("unknown key type", KeyAlgorithm::name);
        writeln!(f, "\n  key          {} (id {}), {kind}", self.label, self.id)?;
        let schemes: Vec<&str> = self.schemes.iter().map(|scheme| scheme.name()).collect();
        let schemes = schemes.join(", ");
        match (self.schemes.is_empty(), self.schemes.iter().any(|scheme| scheme.is_in_tls13())) {
            (true, _) => writeln!(f, "  can sign     no signature scheme that TLS supports"),
            (false, true) => writeln!(f, "  can sign     {schemes}"),
            (false, false) => writeln!(f, "  can sign     {schemes} (TLS 1.2 only: no RSA-PSS)"),
        }?;
        let Some(certificate) = &self.certificate else {
            return writeln!(f, "  certificate  none: import one with the same id to use this key");
        };
        writeln!(f, "  certificate  {}, until {}", certificate.subject, certificate.not_after)?;
        let name = yaml_quoted(&certificate.common_name);
        let (uri, module) = (yaml_quoted(&self.uri), yaml_quoted(&self.module_path));
        write!(
            f,
            "\n  kubeconfig:\n\
             \n    users:\n    - name: {name}\n      user:\n        auth-provider:\n          name: {PROVIDER}\n          config:\n\
             \x20           pathExec: {SIGNER_PROGRAM}\n\
             \x20           signerApiVersion: v1\n\
             \x20           uri: {uri}\n\
             \n  kuberc (allows it):\n\
             \n    apiVersion: kubectl.config.k8s.io/v1beta1\n    kind: Preference\n    credentialPluginPolicy: Allowlist\n    credentialPluginAllowlist:\n\
             \x20   - command: {SIGNER_PROGRAM}\n      pathLib: [{module}]\n"
        )
    }
}
