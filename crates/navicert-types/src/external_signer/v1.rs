//! `external-signer.authentication.k8s.io/v1`: our own second version (C880–C885). Chains, IANA's names for schemes, whole
//! messages instead of digests, prompts, reasons, and a socket for a signer that stays.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{Configuration, MessageError, decode, expect, head};
use crate::Timestamp;

/// The `apiVersion`.
pub const API_VERSION: &str = "external-signer.authentication.k8s.io/v1";

/// Which cluster it is for (X9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    /// Its address.
    pub server: String,
    /// The name its certificate is checked for, if it is another than the address's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tls_server_name: String,
}

/// What a signer is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Who are you? (C882)
    Certificate(CertificateRequest),
    /// Sign this (C883).
    Sign(SignRequest),
}

/// Who are you?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateRequest {
    /// The settings, never with a PIN.
    pub configuration: Configuration,
    /// Which cluster it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// Whether the signer may ask the user at the terminal.
    pub interactive: bool,
}

/// Sign this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignRequest {
    /// The settings, never with a PIN.
    pub configuration: Configuration,
    /// Which cluster it is for.
    pub cluster: Option<Cluster>,
    /// Whether the signer may ask the user at the terminal.
    pub interactive: bool,
    /// What the signer called the key.
    pub key_handle: Option<String>,
    /// IANA's name.
    pub scheme: String,
    /// The whole input, not a hash of it (X8).
    pub message: Vec<u8>,
    /// A hash of it, for devices that can do no other; it must fit.
    pub digest: Option<Vec<u8>>,
}

/// What a signer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// From now on at this socket (C885).
    Ready {
        /// Its path.
        socket: String,
    },
    /// Something to show to the user (C884).
    Prompt {
        /// The text, which is cleaned before it is shown.
        message: String,
        /// `info`, `touch` or `pin`: what it is about. Never a question whose answer the client should collect.
        kind: String,
    },
    /// Who I am.
    Certificate {
        /// DER, leaf first.
        chain: Vec<Vec<u8>>,
        /// IANA's names, best first.
        schemes: Vec<String>,
        /// Until when.
        expires: Option<Timestamp>,
        /// A name for the key, to be given back.
        key_handle: Option<String>,
    },
    /// A signature.
    Signature {
        /// Its bytes.
        signature: Vec<u8>,
        /// IANA's name.
        scheme: String,
    },
    /// Why not.
    Error {
        /// One of the known reasons (C884), or something new.
        reason: String,
        /// In words.
        message: String,
        /// When it makes sense to ask again.
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
    configuration: Configuration,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster>,
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_handle: Option<String>,
    scheme: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// Every field of every message of a signer; which of them count is the kind's to say.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMessage {
    #[serde(skip_serializing_if = "String::is_empty")]
    socket: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    /// `kind` is taken by the envelope.
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
    /// As one line of JSON, without its end.
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

    /// From JSON; fields of tomorrow are passed over.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        expect(text, API_VERSION, &REQUESTS)?;
        let malformed = |_| MessageError::Malformed;
        if head(text)?.1 == "CertificateRequest" {
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
    pub fn configuration(&self) -> &Configuration {
        match self {
            Request::Certificate(request) => &request.configuration,
            Request::Sign(request) => &request.configuration,
        }
    }

    /// Whether the signer may ask the user at the terminal.
    pub fn is_interactive(&self) -> bool {
        match self {
            Request::Certificate(request) => request.interactive,
            Request::Sign(request) => request.interactive,
        }
    }
}

impl Message {
    /// Whether it is the last one of an answer (C881).
    pub fn is_last(&self) -> bool {
        !matches!(self, Message::Ready { .. } | Message::Prompt { .. })
    }

    /// As one line of JSON, without its end.
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

    /// From JSON.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_json(text: &[u8]) -> Result<Self, MessageError> {
        expect(text, API_VERSION, &MESSAGES)?;
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
