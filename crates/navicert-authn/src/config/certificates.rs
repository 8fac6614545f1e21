//! Parses PEM certificate bundles as Go's PEM and X.509 packages do.
// S32

use navicert_go::pem;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// The certificates of a PEM bundle in DER, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut found = Vec::new();
    let blocks = pem::blocks(text.as_bytes()).into_iter();
    for block in blocks.filter(|block| block.label == "CERTIFICATE" && !block.has_headers) {
        let mut rest = block.der.as_slice();
        while !rest.is_empty() {
            let (after, _) = X509Certificate::from_der(rest).map_err(|_| "x509: malformed certificate")?;
            let length = rest.len() - after.len();
            found.push(rest.get(..length).unwrap_or_default().to_vec());
            rest = after;
        }
    }
    if found.is_empty() {
        return Err("data does not contain any valid RSA or ECDSA certificates");
    }
    Ok(found)
}
