//! A certificate authority for tests: roots, intermediates, server and client certificates of every key kind.
//!
//! Validity is fixed (2000 to 2100 unless asked otherwise), so that no certificate depends on today's date.

mod identity;
mod subject;

use std::sync::Arc;

use navicert_types::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
    SubjectPublicKeyInfo, date_time_ymd, string::PrintableString,
};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

pub(crate) use identity::subject_public_key_info;
pub use identity::{Identity, IdentityFiles, pem};

/// The kinds of key a certificate can have.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KeyKind {
    /// RSA with a modulus of 2048 bits. Slow to make; prefer a curve where the kind does not matter.
    Rsa2048,
    /// ECDSA on P-256.
    EcP256,
    /// ECDSA on P-384.
    EcP384,
    /// ECDSA on P-521.
    EcP521,
    /// Ed25519.
    Ed25519,
}

impl KeyKind {
    /// Every kind.
    pub const ALL: [KeyKind; 5] =
        [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];
}

/// A certificate authority. Clones share the key.
///
/// ```
/// use navicert_testkit::{Ca, KeyKind};
///
/// let ca = Ca::new("example root");
/// let server = ca.server().name("api.example.test").issue();
/// let client = ca.client("ann").organization("developers").key(KeyKind::Ed25519).issue();
/// assert!(server.chain_pem().starts_with("-----BEGIN CERTIFICATE-----"));
/// assert_eq!(client.key_kind(), KeyKind::Ed25519);
/// ```
#[derive(Clone, Debug)]
pub struct Ca {
    issuer: Arc<CertifiedIssuer<'static, KeyPair>>,
    /// What a leaf's chain carries after the leaf: this CA and its parents, without the root.
    intermediates: Vec<CertificateDer<'static>>,
}

impl Ca {
    /// A root with a P-256 key.
    pub fn new(common_name: &str) -> Self {
        Ca::with_key(common_name, KeyKind::EcP256)
    }

    /// A root with a key of this kind.
    pub fn with_key(common_name: &str, kind: KeyKind) -> Self {
        let issuer = CertifiedIssuer::self_signed(ca_params(common_name), identity::generate(kind))
            .expect("a self-signed root from parameters the test kit chose");
        Ca { issuer: Arc::new(issuer), intermediates: Vec::new() }
    }

    /// What `openssl req -x509` makes: a root that is a server's certificate itself, for `localhost`, `127.0.0.1` and `::1`.
    ///
    /// ```
    /// use navicert_testkit::{Ca, HttpServer};
    ///
    /// let ca = Ca::self_signed_server("api");
    /// let server = HttpServer::builder().identity(&ca.own_identity()).start(&ca);
    /// assert!(server.url().starts_with("https://"));
    /// ```
    pub fn self_signed_server(common_name: &str) -> Self {
        let mut params = ca_params(common_name);
        params.key_usages.clear();
        params.subject_alt_names = ["localhost", "127.0.0.1", "::1"]
            .map(|name| match name.parse() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.try_into().expect("a DNS name")),
            })
            .into();
        let issuer = CertifiedIssuer::self_signed(params, identity::generate(KeyKind::EcP256))
            .expect("a self-signed root from parameters the test kit chose");
        Ca { issuer: Arc::new(issuer), intermediates: Vec::new() }
    }

    /// This CA's own P-256 certificate and key, for a server that presents them.
    pub fn own_identity(&self) -> Identity {
        Identity::new(vec![self.der().clone()], self.issuer.key(), KeyKind::EcP256)
    }

    /// A root with the common name and key of an existing root. Its certificate differs, but what it issues is valid
    /// wherever the existing root is trusted.
    ///
    /// # Panics
    /// If the text is no private key in PEM.
    pub fn in_the_name_of(common_name: &str, key_pem: &str) -> Self {
        let key =
            KeyPair::from_pem(key_pem).unwrap_or_else(|error| panic!("that is no private key: {error}"));
        let mut params = ca_params(common_name);
        // Names are compared byte by byte, and Go writes plain ones as PrintableString.
        let name = PrintableString::try_from(common_name).expect("a name of plain characters");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, DnValue::PrintableString(name));
        let issuer = CertifiedIssuer::self_signed(params, key)
            .expect("a self-signed root from parameters the test kit chose");
        Ca { issuer: Arc::new(issuer), intermediates: Vec::new() }
    }

    /// An intermediate under this CA. Chains of what it issues carry it; clients keep trusting the root.
    pub fn intermediate(&self, common_name: &str) -> Ca {
        let key = identity::generate(KeyKind::EcP256);
        let issuer = CertifiedIssuer::signed_by(ca_params(common_name), key, &self.issuer)
            .expect("an intermediate from parameters the test kit chose");
        let mut intermediates = vec![issuer.der().clone()];
        intermediates.extend(self.intermediates.iter().cloned());
        Ca { issuer: Arc::new(issuer), intermediates }
    }

    /// Begins a server certificate for `localhost`, `127.0.0.1` and `::1`.
    pub fn server(&self) -> IdentityBuilder<'_> {
        let builder = self.builder("localhost", ExtendedKeyUsagePurpose::ServerAuth);
        ["localhost", "127.0.0.1", "::1"].into_iter().fold(builder, IdentityBuilder::name)
    }

    /// Begins a server certificate that is valid for no name until [`IdentityBuilder::name`] adds one.
    pub fn server_without_names(&self) -> IdentityBuilder<'_> {
        self.builder("nameless", ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Begins a client certificate: the common name is the user, organizations are its groups.
    pub fn client(&self, common_name: &str) -> IdentityBuilder<'_> {
        self.builder(common_name, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// This CA's own certificate.
    pub fn der(&self) -> &CertificateDer<'static> {
        self.issuer.der()
    }

    /// This CA's own certificate as PEM: what goes into `certificate-authority-data`.
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.der())
    }

    /// A root store that trusts this CA alone.
    pub fn root_store(&self) -> Arc<RootCertStore> {
        let mut store = RootCertStore::empty();
        store.add(self.der().clone()).expect("our own CA certificate is a trust anchor");
        Arc::new(store)
    }

    fn builder(&self, common_name: &str, usage: ExtendedKeyUsagePurpose) -> IdentityBuilder<'_> {
        IdentityBuilder {
            ca: self,
            common_name: common_name.to_owned(),
            organizations: Vec::new(),
            names: Vec::new(),
            kind: KeyKind::EcP256,
            validity: USUAL,
            usage,
        }
    }
}

/// A certificate about to be issued.
#[derive(Clone, Debug)]
#[must_use = "nothing is issued before `issue`"]
pub struct IdentityBuilder<'a> {
    ca: &'a Ca,
    common_name: String,
    organizations: Vec<String>,
    names: Vec<String>,
    kind: KeyKind,
    validity: Validity,
    usage: ExtendedKeyUsagePurpose,
}

impl IdentityBuilder<'_> {
    /// Adds an organization (a Kubernetes group); call it once per group, they keep their order.
    pub fn organization(mut self, organization: &str) -> Self {
        self.organizations.push(organization.to_owned());
        self
    }

    /// Adds a subject alternative name: a DNS name or an IP address.
    pub fn name(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Chooses the kind of key; P-256 otherwise.
    pub fn key(mut self, kind: KeyKind) -> Self {
        self.kind = kind;
        self
    }

    /// Valid from the first second to the second, both included.
    pub fn valid(mut self, from: Timestamp, until: Timestamp) -> Self {
        self.validity = Validity { from: from.as_second(), until: until.as_second() };
        self
    }

    /// Expired long ago.
    pub fn expired(mut self) -> Self {
        self.validity = PAST;
        self
    }

    /// Valid only in a distant future.
    pub fn not_yet_valid(mut self) -> Self {
        self.validity = FUTURE;
        self
    }

    /// Makes a key and its certificate.
    pub fn issue(self) -> Identity {
        let key = identity::generate(self.kind);
        let chain = self.sign(&key);
        Identity::new(chain, &key, self.kind)
    }

    /// Makes a new certificate for the key of another identity, as a renewal does.
    pub fn renew(self, of: &Identity) -> Identity {
        let key = of.key_pair();
        let chain = self.sign(&key);
        Identity::new(chain, &key, of.key_kind())
    }

    /// Makes the certificate chain for a public key whose private half lives elsewhere (an HSM).
    ///
    /// # Panics
    /// If `public_key` is not a DER SubjectPublicKeyInfo of a kind this CA knows.
    pub fn issue_for(self, public_key: &[u8]) -> Vec<CertificateDer<'static>> {
        let key = SubjectPublicKeyInfo::from_der(public_key)
            .unwrap_or_else(|error| panic!("not the SubjectPublicKeyInfo of a known key kind: {error}"));
        self.sign(&key)
    }

    fn sign(&self, key: &impl PublicKeyData) -> Vec<CertificateDer<'static>> {
        let mut params = CertificateParams::new(self.names.clone())
            .unwrap_or_else(|error| panic!("one of {:?} is not a DNS name or address: {error}", self.names));
        params.distinguished_name = common_name(&self.common_name);
        set_validity(&mut params, self.validity);
        params.serial_number = Some(random_serial());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![self.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        let certificate =
            params.signed_by(key, &self.ca.issuer).expect("a certificate from parameters the test kit chose");
        let der =
            subject::rewrite(certificate.der(), &self.organizations, &self.common_name, self.ca.issuer.key());
        let mut chain = vec![der];
        chain.extend(self.ca.intermediates.iter().cloned());
        chain
    }
}

#[derive(Clone, Copy, Debug)]
struct Validity {
    from: i64,
    until: i64,
}

const USUAL: Validity = Validity { from: 946_684_800, until: 4_102_444_800 }; // 2000-01-01 to 2100-01-01
const PAST: Validity = Validity { from: 946_684_800, until: 978_307_200 }; // the year 2000
const FUTURE: Validity = Validity { from: 4_070_908_800, until: 4_102_444_800 }; // the year 2099

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    set_validity(&mut params, USUAL);
    params.serial_number = Some(random_serial());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn set_validity(params: &mut CertificateParams, validity: Validity) {
    // rcgen's dates are the `time` crate's; counting from its epoch spares us that dependency.
    let date = |unix_seconds: i64| {
        let distance = std::time::Duration::from_secs(unix_seconds.unsigned_abs());
        let epoch = date_time_ymd(1970, 1, 1);
        if unix_seconds < 0 { epoch - distance } else { epoch + distance }
    };
    params.not_before = date(validity.from);
    params.not_after = date(validity.until);
}

/// Twenty octets are allowed; sixteen, positive and never zero in front, keep every parser content.
fn random_serial() -> SerialNumber {
    let mut bytes = [0u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system's random generator");
    bytes[0] = (bytes[0] & 0x3f) | 0x40;
    SerialNumber::from_slice(&bytes)
}

#[cfg(test)]
mod tests;
