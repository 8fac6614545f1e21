//! Gives a certificate several organizations: rcgen's names hold one value per attribute, Kubernetes puts every
//! group into an `O` of its own. The subject is replaced in the DER and the certificate signed again.

use rcgen::{KeyPair, SigningKey};
use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a]; // 2.5.4.10
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03]; // 2.5.4.3
/// Where the subject stands in a v3 TBSCertificate (RFC 5280 §4.1): version, serial, algorithm, issuer, validity, subject.
const SUBJECT: usize = 5;

pub(super) fn rewrite(
    certificate: &CertificateDer<'_>,
    organizations: &[String],
    common_name: &str,
    key: &KeyPair,
) -> CertificateDer<'static> {
    if organizations.is_empty() {
        return certificate.clone().into_owned();
    }
    let parts = elements(contents(certificate));
    let [tbs, algorithm, _old_signature] = parts.as_slice() else {
        panic!("a certificate has three parts, not {}", parts.len())
    };
    let mut fields: Vec<Vec<u8>> = elements(contents(tbs)).into_iter().map(<[u8]>::to_vec).collect();
    fields[SUBJECT] = name(organizations, common_name);
    let tbs = wrap(SEQUENCE, &fields.concat());
    let mut signature = vec![0]; // no unused bits
    signature.extend(key.sign(&tbs).expect("the CA signs its own certificate"));
    CertificateDer::from(wrap(SEQUENCE, &[tbs, algorithm.to_vec(), wrap(BIT_STRING, &signature)].concat()))
}

/// Organizations first, then the common name, as `openssl req -subj /O=…/O=…/CN=…` writes them.
fn name(organizations: &[String], common_name: &str) -> Vec<u8> {
    let attributes = organizations.iter().map(|organization| (ORGANIZATION, organization.as_str()));
    let names: Vec<u8> = attributes
        .chain([(COMMON_NAME, common_name)])
        .flat_map(|(oid, value)| relative_name(&oid, value))
        .collect();
    wrap(SEQUENCE, &names)
}

fn relative_name(oid: &[u8], value: &str) -> Vec<u8> {
    let pair = [wrap(OBJECT_IDENTIFIER, oid), wrap(UTF8_STRING, value.as_bytes())].concat();
    wrap(SET, &wrap(SEQUENCE, &pair))
}

/// Tag, length, value.
fn wrap(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(value.len()) {
        Ok(short @ 0..=0x7f) => out.push(short),
        _ => {
            let length: Vec<u8> =
                value.len().to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | u8::try_from(length.len()).expect("at most eight octets of length"));
            out.extend(length);
        }
    }
    out.extend(value);
    out
}

/// The value of the one element that `der` is.
fn contents(der: &[u8]) -> &[u8] {
    let (header, length) = measure(der);
    &der[header..header + length]
}

/// The elements that stand one after the other in `der`, each with its tag and length.
fn elements(mut der: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !der.is_empty() {
        let (header, length) = measure(der);
        let (element, rest) = der.split_at(header + length);
        found.push(element);
        der = rest;
    }
    found
}

/// How many octets the header and the value of the first element take.
fn measure(der: &[u8]) -> (usize, usize) {
    match der[1] {
        short @ 0..=0x7f => (2, usize::from(short)),
        long => {
            let octets = usize::from(long & 0x7f);
            let length = der[2..2 + octets].iter().fold(0, |sum, octet| (sum << 8) | usize::from(*octet));
            (2 + octets, length)
        }
    }
}
