//! Parses PEM certificate bundles as Go's PEM and X.509 packages do.
// S32

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// The certificates of a PEM bundle in DER, or what is wrong with it.
pub(super) fn parse(pem: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut found = Vec::new();
    for block in blocks(pem) {
        let mut rest = block.as_slice();
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

/// The contents of all `CERTIFICATE` blocks without headers; everything else is ignored.
fn blocks(pem: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut lines = pem.lines();
    while let Some(line) = lines.next() {
        let Some(label) = label_of(line, "-----BEGIN ") else { continue };
        let mut body = String::new();
        let mut has_headers = false;
        // An unterminated block is ignored; the search continues after its first line.
        let mut ahead = lines.clone();
        let closed = loop {
            let Some(line) = ahead.next() else { break false };
            if let Some(end) = label_of(line, "-----END ") {
                break end == label;
            }
            has_headers |= line.contains(':');
            body.extend(line.split_whitespace());
        };
        if !closed {
            continue;
        }
        lines = ahead;
        if label == "CERTIFICATE"
            && !has_headers
            && let Ok(bytes) = STANDARD.decode(&body)
        {
            found.push(bytes);
        }
    }
    found
}

fn label_of<'l>(line: &'l str, start: &str) -> Option<&'l str> {
    line.trim_end().strip_prefix(start)?.strip_suffix("-----")
}
