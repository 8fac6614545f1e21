//! What `signer request` made: a request, a certificate, or both.

use std::fmt;

use serde::Serialize;

/// The result of `signer request`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestReport {
    /// The label of the token.
    pub token: String,
    /// The key, as a `pkcs11:` URI.
    pub uri: String,
    /// Whether the key was made now.
    pub key_created: bool,
    /// The certificate request as PEM text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The name of the submitted `CertificateSigningRequest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The certificate chain as PEM text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// When the certificate expires (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
    /// Whether the certificate is stored in the token.
    pub stored: bool,
    /// How many certificates of issuers were stored with it; those that the token had, and roots, are left out.
    pub issuers_stored: usize,
}

/// The PEM text that is wanted, or what was done and what to do next.
impl fmt::Display for RequestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestReport { token, uri, request, name, certificate, not_after, .. } = self;
        if self.stored {
            let until = not_after.as_deref().unwrap_or_default();
            let issuers = match self.issuers_stored {
                0 => String::new(),
                1 => " and that of its issuer".to_owned(),
                count => format!(" and those of {count} issuers"),
            };
            writeln!(f, "stored the certificate{issuers} in token {token}, valid until {until}")?;
            return writeln!(f, "  try it: navicert signer check '{uri}'");
        }
        match (certificate, name, request) {
            (Some(certificate), _, _) => f.write_str(certificate),
            (None, Some(name), _) => {
                writeln!(f, "submitted CertificateSigningRequest {name}")?;
                writeln!(f, "  an administrator approves it: kubectl certificate approve {name}")
            }
            (None, None, request) => f.write_str(request.as_deref().unwrap_or_default()),
        }
    }
}
