//! `external-signer.authentication.k8s.io/v1`, defined by navicert: certificate chains, IANA signature scheme names, whole
//! messages instead of digests, prompts, error reasons, and a socket for long-running signers.
// C880–C885

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use serde::{Deserialize, Serialize};

use super::{MessageError, SignerConfiguration, decode, expect_type, type_meta};
use crate::Timestamp;

/// The `apiVersion`.
pub const API_VERSION: &str = "external-signer.authentication.k8s.io/v1";

/// The cluster a request is for.
// X9
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SignerCluster {
    /// The server URL.
    pub server: String,
    /// Server name for certificate verification, if it differs from the URL's host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tls_server_name: String,
}

/// A request to a signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Requests the certificate.
    // C882
    Certificate(CertificateRequest),
    /// Requests a signature.
    // C883
    Sign(SignRequest),
}

/// Requests the signer's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateRequest {
    /// The settings, without a PIN.
    pub configuration: SignerConfiguration,
    /// The cluster a request is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<SignerCluster>,
    /// Whether the signer may prompt on the terminal.
    pub interactive: bool,
}

/// Requests a signature over a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignRequest {
    /// The settings, without a PIN.
    pub configuration: SignerConfiguration,
    /// The cluster a request is for.
    pub cluster: Option<SignerCluster>,
    /// Whether the signer may prompt on the terminal.
    pub interactive: bool,
    /// The key handle from the certificate response.
    pub key_handle: Option<String>,
    /// IANA name of the signature scheme.
    pub scheme: String,
    /// The whole message, not a digest.
    // X8
    pub message: Vec<u8>,
    /// Digest of the message, for devices that sign only digests; it must match the message.
    pub digest: Option<Vec<u8>>,
}

/// A message from a signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The signer accepts further requests on this socket.
    // C885
    Ready {
        /// Path of the socket.
        socket: String,
    },
    /// A message to show to the user.
    // C884
    Prompt {
        /// The text; clients escape it before printing.
        message: String,
        /// `info`, `touch` or `pin`. The client never collects an answer.
        kind: String,
    },
    /// The certificate chain.
    Certificate {
        /// DER, leaf first.
        chain: Vec<Vec<u8>>,
        /// IANA names of supported schemes, preferred first.
        schemes: Vec<String>,
        /// When the certificate expires.
        expires: Option<Timestamp>,
        /// Key handle for later requests.
        key_handle: Option<String>,
    },
    /// A signature.
    Signature {
        /// The signature bytes.
        signature: Vec<u8>,
        /// IANA name of the signature scheme.
        scheme: String,
    },
    /// The request failed.
    Error {
        /// A known reason, or an unknown one from a newer signer.
        // C884
        reason: String,
        /// Description of the error.
        message: String,
        /// Delay before a retry.
        retry_after_seconds: Option<u64>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<T> {
    api_version: String,
    kind: String,
    #[serde(flatten)]
    body: T,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSign {
    configuration: SignerConfiguration,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<SignerCluster>,
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_handle: Option<String>,
    scheme: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// The fields of all messages; `kind` decides which ones apply.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMessage {
    #[serde(skip_serializing_if = "String::is_empty")]
    socket: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    /// Named `promptKind` because the envelope uses `kind`.
    #[serde(skip_serializing_if = "String::is_empty")]
    prompt_kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificate_chain: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    supported_schemes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_handle: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    signature: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    scheme: String,
}

const REQUESTS: [&str; 2] = ["CertificateRequest", "SignRequest"];
const MESSAGES: [&str; 5] = ["Ready", "Prompt", "CertificateResponse", "SignResponse", "Error"];

impl Request {
    /// Encodes as one line of JSON without the line break.
    pub fn to_json(&self) -> String {
        let api_version = API_VERSION.to_owned();
        let written = match self {
            Request::Certificate(request) => {
                let kind = "CertificateRequest".to_owned();
                serde_json::to_string(&Envelope { api_version, kind, body: request.clone() })
            }
            Request::Sign(request) => {
                let body = WireSign {
                    configuration: request.configuration.clone(),
                    cluster: request.cluster.clone(),
                    interactive: request.interactive,
                    key_handle: request.key_handle.clone(),
                    scheme: request.scheme.clone(),
                    message: STANDARD.encode(&request.message),
                    digest: request.digest.as_ref().map(|digest| STANDARD.encode(digest)),
                };
                serde_json::to_string(&Envelope { api_version, kind: "SignRequest".to_owned(), body })
            }
        };
        written.unwrap_or_default()
    }

    /// Decodes JSON; unknown fields are ignored.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        expect_type(text, API_VERSION, &REQUESTS)?;
        let malformed = |_| MessageError::Malformed;
        if type_meta(text)?.1 == "CertificateRequest" {
            return serde_json::from_slice(text).map(Request::Certificate).map_err(malformed);
        }
        let wire: WireSign = serde_json::from_slice(text).map_err(malformed)?;
        Ok(Request::Sign(SignRequest {
            message: decode("message", &wire.message)?,
            digest: wire.digest.as_deref().map(|digest| decode("digest", digest)).transpose()?,
            configuration: wire.configuration,
            cluster: wire.cluster,
            interactive: wire.interactive,
            key_handle: wire.key_handle,
            scheme: wire.scheme,
        }))
    }

    /// The settings.
    pub fn configuration(&self) -> &SignerConfiguration {
        match self {
            Request::Certificate(request) => &request.configuration,
            Request::Sign(request) => &request.configuration,
        }
    }

    /// Whether the signer may prompt on the terminal.
    pub fn is_interactive(&self) -> bool {
        match self {
            Request::Certificate(request) => request.interactive,
            Request::Sign(request) => request.interactive,
        }
    }
}

impl Message {
    /// Whether it ends the response to a request.
    // C881
    pub fn is_last(&self) -> bool {
        !matches!(self, Message::Ready { .. } | Message::Prompt { .. })
    }

    /// Encodes as one line of JSON without the line break.
    pub fn to_json(&self) -> String {
        let (kind, body) = match self.clone() {
            Message::Ready { socket } => ("Ready", WireMessage { socket, ..WireMessage::default() }),
            Message::Prompt { message, kind } => {
                ("Prompt", WireMessage { message, prompt_kind: kind, ..WireMessage::default() })
            }
            Message::Certificate { chain, schemes, expires, key_handle } => {
                let certificate_chain =
                    chain.iter().map(|certificate| STANDARD.encode(certificate)).collect();
                let expiration_timestamp = expires.map(|moment| moment.to_string());
                let supported_schemes = schemes;
                let body = WireMessage {
                    certificate_chain,
                    supported_schemes,
                    expiration_timestamp,
                    key_handle,
                    ..WireMessage::default()
                };
                ("CertificateResponse", body)
            }
            Message::Signature { signature, scheme } => {
                let signature = STANDARD.encode(signature);
                ("SignResponse", WireMessage { signature, scheme, ..WireMessage::default() })
            }
            Message::Error { reason, message, retry_after_seconds } => {
                ("Error", WireMessage { reason, message, retry_after_seconds, ..WireMessage::default() })
            }
        };
        let envelope = Envelope { api_version: API_VERSION.to_owned(), kind: kind.to_owned(), body };
        serde_json::to_string(&envelope).unwrap_or_default()
    }

    /// Decodes JSON.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        expect_type(text, API_VERSION, &MESSAGES)?;
        let envelope: Envelope<WireMessage> =
            serde_json::from_slice(text).map_err(|_| MessageError::Malformed)?;
        let body = envelope.body;
        Ok(match envelope.kind.as_str() {
            "Ready" if body.socket.is_empty() => return Err(MessageError::Empty("socket")),
            "Ready" => Message::Ready { socket: body.socket },
            "Prompt" => Message::Prompt { message: body.message, kind: body.prompt_kind },
            "CertificateResponse" => {
                let chain = body.certificate_chain.iter().map(|text| decode("certificateChain", text));
                let chain: Vec<Vec<u8>> = chain.collect::<Result<_, _>>()?;
                if chain.is_empty() {
                    return Err(MessageError::Empty("certificateChain"));
                }
                let expires = body.expiration_timestamp.and_then(|text| text.parse().ok());
                let (schemes, key_handle) = (body.supported_schemes, body.key_handle);
                Message::Certificate { chain, schemes, expires, key_handle }
            }
            "SignResponse" => {
                Message::Signature { signature: decode("signature", &body.signature)?, scheme: body.scheme }
            }
            _ => Message::Error {
                reason: body.reason,
                message: body.message,
                retry_after_seconds: body.retry_after_seconds,
            },
        })
    }
}
