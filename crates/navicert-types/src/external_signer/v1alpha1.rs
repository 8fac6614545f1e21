//! `external-signer.authentication.k8s.io/v1alpha1`: the four messages of the KEP, and the kinds its prototype uses
//! instead.
// §8.3
// C820

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use serde::{Deserialize, Serialize};

use super::{MessageError, SignerConfiguration, decode, expect_type, type_meta};

/// The `apiVersion`.
pub const API_VERSION: &str = "external-signer.authentication.k8s.io/v1alpha1";

/// Which kinds the four messages have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinds {
    /// The kinds of the KEP.
    #[default]
    Kep,
    /// The kinds of the prototype (`signerProtocol: prototype`). Responses of either kind are accepted.
    Prototype,
}

impl Kinds {
    fn certificate_request(self) -> &'static str {
        if self == Kinds::Kep { "CertificateRequest" } else { "Certificate" }
    }

    fn sign_request(self) -> &'static str {
        if self == Kinds::Kep { "SignRequest" } else { "Sign" }
    }

    fn certificate_responses(self) -> &'static [&'static str] {
        if self == Kinds::Kep {
            &["CertificateResponse"]
        } else {
            &["ExternalPublicKey", "CertificateResponse"]
        }
    }

    fn sign_responses(self) -> &'static [&'static str] {
        if self == Kinds::Kep { &["SignResponse"] } else { &["ExternalSigner", "SignResponse"] }
    }
}

/// A request to a signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Requests the certificate.
    Certificate {
        /// The settings.
        configuration: SignerConfiguration,
        /// The kinds to use in the response.
        kinds: Kinds,
    },
    /// Requests a signature.
    Sign {
        /// The settings.
        configuration: SignerConfiguration,
        /// The digest to sign, or for Ed25519 the message.
        digest: Vec<u8>,
        /// The name of a Go type.
        // X6
        options_type: String,
        /// The options as JSON.
        // X7
        options: String,
        /// The kinds to use in the response.
        kinds: Kinds,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCertificateRequest {
    api_version: String,
    kind: String,
    #[serde(default)]
    configuration: SignerConfiguration,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSignRequest {
    api_version: String,
    kind: String,
    digest: String,
    #[serde(default)]
    configuration: SignerConfiguration,
    signer_opts_type: String,
    signer_opts: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCertificateResponse {
    api_version: String,
    kind: String,
    #[serde(default)]
    certificate: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSignResponse {
    api_version: String,
    kind: String,
    #[serde(default)]
    signature: String,
}

impl Request {
    /// Encodes as JSON. May contain a PIN if the application permits one.
    pub fn to_json(&self) -> String {
        let api_version = API_VERSION.to_owned();
        let written = match self {
            Request::Certificate { configuration, kinds } => serde_json::to_string(&WireCertificateRequest {
                api_version,
                kind: kinds.certificate_request().to_owned(),
                configuration: configuration.clone(),
            }),
            Request::Sign { configuration, digest, options_type, options, kinds } => {
                serde_json::to_string(&WireSignRequest {
                    api_version,
                    kind: kinds.sign_request().to_owned(),
                    digest: STANDARD.encode(digest),
                    configuration: configuration.clone(),
                    signer_opts_type: options_type.clone(),
                    signer_opts: options.clone(),
                })
            }
        };
        written.unwrap_or_default()
    }

    /// Decodes JSON with either set of kinds; the signer responds with the same set.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        expect_type(text, API_VERSION, &["CertificateRequest", "SignRequest", "Certificate", "Sign"])?;
        let malformed = |_| MessageError::Malformed;
        let (_, kind) = type_meta(text)?;
        let kinds = if kind.ends_with("Request") { Kinds::Kep } else { Kinds::Prototype };
        if kind == kinds.certificate_request() {
            let wire: WireCertificateRequest = serde_json::from_slice(text).map_err(malformed)?;
            return Ok(Request::Certificate { configuration: wire.configuration, kinds });
        }
        let wire: WireSignRequest = serde_json::from_slice(text).map_err(malformed)?;
        Ok(Request::Sign {
            configuration: wire.configuration,
            digest: decode("digest", &wire.digest)?,
            options_type: wire.signer_opts_type,
            options: wire.signer_opts,
            kinds,
        })
    }

    /// The settings.
    pub fn configuration(&self) -> &SignerConfiguration {
        match self {
            Request::Certificate { configuration, .. } | Request::Sign { configuration, .. } => configuration,
        }
    }
}

/// A response with a certificate in DER.
pub fn certificate_response(certificate: &[u8], kinds: Kinds) -> String {
    let kind = kinds.certificate_responses().first().copied().unwrap_or_default().to_owned();
    let certificate = STANDARD.encode(certificate);
    let wire = WireCertificateResponse { api_version: API_VERSION.to_owned(), kind, certificate };
    serde_json::to_string(&wire).unwrap_or_default()
}

/// A response with a signature.
pub fn sign_response(signature: &[u8], kinds: Kinds) -> String {
    let kind = kinds.sign_responses().first().copied().unwrap_or_default().to_owned();
    let wire =
        WireSignResponse { api_version: API_VERSION.to_owned(), kind, signature: STANDARD.encode(signature) };
    serde_json::to_string(&wire).unwrap_or_default()
}

/// Decodes a certificate response: one or more DER certificates, or PEM.
///
/// # Errors
/// [`MessageError`].
// C821
pub fn read_certificate(text: &[u8], kinds: Kinds) -> Result<Vec<u8>, MessageError> {
    expect_type(text, API_VERSION, kinds.certificate_responses())?;
    let wire: WireCertificateResponse = serde_json::from_slice(text).map_err(|_| MessageError::Malformed)?;
    decode("certificate", &wire.certificate)
}

/// Decodes a signature response.
///
/// # Errors
/// [`MessageError`].
pub fn read_signature(text: &[u8], kinds: Kinds) -> Result<Vec<u8>, MessageError> {
    expect_type(text, API_VERSION, kinds.sign_responses())?;
    let wire: WireSignResponse = serde_json::from_slice(text).map_err(|_| MessageError::Malformed)?;
    decode("signature", &wire.signature)
}

/// Decodes Go's `rsa.PSSOptions` from `signerOpts`: salt length and hash number.
pub fn read_pss_options(text: &str) -> Option<(i64, u64)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct PssOptions {
        salt_length: i64,
        hash: u64,
    }
    let options: PssOptions = serde_json::from_str(text).ok()?;
    Some((options.salt_length, options.hash))
}
