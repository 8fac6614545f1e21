//! The fields of a certificate that webpki does not show: what a trusted certificate and an issuer say about themselves.
//! Reading them is lenient where it does not matter: webpki has read every certificate that is accepted. Written by hand
//! because the registry providers link it, whose size is limited by a published figure, and because the rules are Go's.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::der::split;

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// `id-ce`, the arc of the standard extensions.
const STANDARD_EXTENSION: [u8; 2] = [0x55, 0x1d];
const KEY_USAGE: u8 = 15;
const ALTERNATIVE_NAME: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const NAME_CONSTRAINTS: u8 = 30;
const EXTENDED_KEY_USAGE: u8 = 37;
/// Extensions that may be critical: key usage, alternative name, basic constraints, name constraints, distribution points,
/// policies, mappings, policy constraints, extended key usage, inhibit-any-policy.
const KNOWN_EXTENSIONS: [u8; 10] = [15, 17, 19, 30, 31, 32, 33, 36, 37, 54];

/// Names that constraints can be about: mail addresses, DNS names, URIs, IP addresses.
const CONSTRAINED_NAMES: [u8; 4] = [0x81, 0x82, 0x86, 0x87];
const SUBTREES: [u8; 2] = [0xa0, 0xa1];

const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const ANY_PURPOSE: &[u8] = &[0x55, 0x1d, 0x25, 0];

/// Fields of a certificate.
#[derive(Debug)]
pub(crate) struct CertificateFields<'a> {
    /// What the signature covers.
    pub(crate) signed: &'a [u8],
    /// Algorithm identifier, without its tag and length.
    pub(crate) signature_algorithm: &'a [u8],
    pub(crate) signature: &'a [u8],
    pub(crate) issuer: &'a [u8],
    pub(crate) subject: &'a [u8],
    /// In seconds since 1970.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    /// Whether a critical extension has an unknown meaning, or constrains names of an unknown kind.
    pub(crate) has_unknown_critical_extension: bool,
    public_key: &'a [u8],
    alternative_name: Option<&'a [u8]>,
    is_version_3: bool,
    basic_constraints: Option<BasicConstraints>,
    /// Whether the key usage permits to sign certificates; `None` without that extension, or if it is empty.
    key_cert_sign: Option<bool>,
    /// Whether the extended key usage includes servers, or everything; `None` without that extension.
    server_auth: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
struct BasicConstraints {
    is_ca: bool,
    path_length: Option<usize>,
}

impl<'a> CertificateFields<'a> {
    /// Reads a certificate; `None` if its encoding is invalid.
    pub(crate) fn parse(der: &'a [u8]) -> Option<Self> {
        let (certificate, _) = split(SEQUENCE, der)?;
        let (tbs, rest) = split(SEQUENCE, certificate)?;
        let signed = certificate.get(..certificate.len().checked_sub(rest.len())?)?;
        let (signature_algorithm, rest) = split(SEQUENCE, rest)?;
        let (signature, _) = split(BIT_STRING, rest)?;
        let (_, signature) = signature.split_first()?;

        let (version, tbs) = optional(VERSION, tbs);
        let (_serial, tbs) = split(INTEGER, tbs)?;
        let (_algorithm, tbs) = split(SEQUENCE, tbs)?;
        let (issuer, tbs) = split(SEQUENCE, tbs)?;
        let (validity, tbs) = split(SEQUENCE, tbs)?;
        let (subject, tbs) = split(SEQUENCE, tbs)?;
        let (public_key, mut tbs) = split(SEQUENCE, tbs)?;
        let (not_before, rest) = time(validity)?;
        let (not_after, _) = time(rest)?;

        let mut fields = CertificateFields {
            signed,
            signature_algorithm,
            signature,
            issuer,
            subject,
            not_before,
            not_after,
            has_unknown_critical_extension: false,
            public_key,
            alternative_name: None,
            is_version_3: version.is_some_and(|version| version == [INTEGER, 1, 2]),
            basic_constraints: None,
            key_cert_sign: None,
            server_auth: None,
        };
        // Before the extensions there may be unique identifiers of issuer and subject.
        while let Some((&tag, _)) = tbs.split_first() {
            let (content, rest) = split(tag, tbs)?;
            if tag == EXTENSIONS {
                fields.read_extensions(content)?;
            }
            tbs = rest;
        }
        Some(fields)
    }

    fn read_extensions(&mut self, extensions: &'a [u8]) -> Option<()> {
        let (mut extensions, _) = split(SEQUENCE, extensions)?;
        let mut seen = Vec::new();
        while !extensions.is_empty() {
            let (extension, rest) = split(SEQUENCE, extensions)?;
            let (id, extension) = split(OBJECT_IDENTIFIER, extension)?;
            let (critical, extension) = optional(BOOLEAN, extension);
            let (value, _) = split(OCTET_STRING, extension)?;
            if seen.contains(&id) {
                return None;
            }
            seen.push(id);
            let is_known = self.read_extension(id, value)?;
            self.has_unknown_critical_extension |= !is_known && critical.is_some_and(|value| value != [0]);
            extensions = rest;
        }
        Some(())
    }

    /// Reads an extension and says whether all of it is known.
    fn read_extension(&mut self, id: &[u8], value: &'a [u8]) -> Option<bool> {
        let Some(&[id]) = id.strip_prefix(&STANDARD_EXTENSION) else { return Some(false) };
        match id {
            KEY_USAGE => self.key_cert_sign = key_cert_sign(value)?,
            ALTERNATIVE_NAME => self.alternative_name = Some(value),
            BASIC_CONSTRAINTS => self.basic_constraints = Some(basic_constraints(value)?),
            NAME_CONSTRAINTS => return has_known_constraints(value),
            EXTENDED_KEY_USAGE => self.server_auth = server_auth(value)?,
            _ => {}
        }
        Some(KNOWN_EXTENSIONS.contains(&id))
    }

    /// Whether it may sign certificates: it is a certificate authority, and its key usage, if any, permits it.
    /// Certificates older than version 3 cannot say so.
    pub(crate) fn may_sign_certificates(&self) -> bool {
        let is_ca = self.basic_constraints.map_or(!self.is_version_3, |constraints| constraints.is_ca);
        is_ca && self.key_cert_sign != Some(false)
    }

    /// Whether its extended key usage, if any, permits to authenticate servers.
    pub(crate) fn permits_servers(&self) -> bool {
        self.server_auth != Some(false)
    }

    /// Whether it is another certificate of the same subject: same name, key and alternative names.
    pub(crate) fn has_same_subject(&self, other: &CertificateFields<'_>) -> bool {
        self.subject == other.subject
            && self.public_key == other.public_key
            && self.alternative_name == other.alternative_name
    }

    /// How many intermediates may stand below it.
    pub(crate) fn path_length(&self) -> Option<usize> {
        self.basic_constraints?.path_length
    }
}

fn basic_constraints(value: &[u8]) -> Option<BasicConstraints> {
    let (content, _) = split(SEQUENCE, value)?;
    let (is_ca, content) = optional(BOOLEAN, content);
    let (path_length, _) = optional(INTEGER, content);
    let path_length = match path_length {
        Some(octets) if octets.len() > size_of::<usize>() => return None,
        Some(octets) => Some(octets.iter().fold(0, |sum: usize, octet| sum << 8 | usize::from(*octet))),
        None => None,
    };
    Some(BasicConstraints { is_ca: is_ca.is_some_and(|value| value != [0]), path_length })
}

fn has_known_constraints(value: &[u8]) -> Option<bool> {
    let (mut constraints, _) = split(SEQUENCE, value)?;
    let mut known = true;
    for tag in SUBTREES {
        let (subtrees, rest) = optional(tag, constraints);
        let mut subtrees = subtrees.unwrap_or_default();
        while !subtrees.is_empty() {
            let (subtree, rest) = split(SEQUENCE, subtrees)?;
            known &= CONSTRAINED_NAMES.contains(subtree.first()?);
            subtrees = rest;
        }
        constraints = rest;
    }
    Some(known)
}

/// Whether bit 5 is set. Without any bit the extension restricts nothing.
#[expect(
    clippy::option_option,
    reason = "the outer one is a bad encoding, the inner one an absent extension"
)]
fn key_cert_sign(value: &[u8]) -> Option<Option<bool>> {
    let (bits, _) = split(BIT_STRING, value)?;
    let (_unused, bits) = bits.split_first()?;
    let is_empty = bits.iter().all(|octet| *octet == 0);
    Some((!is_empty).then(|| bits.first().is_some_and(|octet| octet & 0x04 != 0)))
}

#[expect(
    clippy::option_option,
    reason = "the outer one is a bad encoding, the inner one an absent extension"
)]
fn server_auth(value: &[u8]) -> Option<Option<bool>> {
    let (mut purposes, _) = split(SEQUENCE, value)?;
    let mut found = None;
    while !purposes.is_empty() {
        let (purpose, rest) = split(OBJECT_IDENTIFIER, purposes)?;
        found = Some(found == Some(true) || purpose == SERVER_AUTH || purpose == ANY_PURPOSE);
        purposes = rest;
    }
    Some(found)
}

/// Splits off a time and gives it in seconds since 1970.
fn time(input: &[u8]) -> Option<(i64, &[u8])> {
    let (tag, _) = input.split_first()?;
    let (text, rest) = split(*tag, input)?;
    let digits = text.strip_suffix(b"Z")?;
    let numbers: Vec<i16> =
        digits.chunks(2).map(|pair| std::str::from_utf8(pair).ok()?.parse().ok()).collect::<Option<_>>()?;
    let (year, rest_of_date) = match (*tag, numbers.as_slice()) {
        // Two digits of a year mean 1950 to 2049.
        (UTC_TIME, [year, rest @ ..]) => (if *year < 50 { 2000 + year } else { 1900 + year }, rest),
        (GENERALIZED_TIME, [century, year, rest @ ..]) => (century * 100 + year, rest),
        _ => return None,
    };
    let rest_of_date: Vec<i8> =
        rest_of_date.iter().map(|number| i8::try_from(*number)).collect::<Result<_, _>>().ok()?;
    let &[month, day, hour, minute, second] = rest_of_date.as_slice() else { return None };
    let time = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    Some((time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second(), rest))
}

/// Splits off the first element if it has this tag.
fn optional(tag: u8, input: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match split(tag, input) {
        Some((content, rest)) => (Some(content), rest),
        None => (None, input),
    }
}
