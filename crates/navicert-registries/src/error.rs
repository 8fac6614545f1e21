//! Why a provider has no answer: one variant per thing somebody can do something about, each with its exit code.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use navicert_image::author::AuthorError;
use navicert_types::{Secret, redact};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::form::percent_decode;
use crate::http::{HttpError, HttpRequest, HttpResponse, HttpsProxyError};

/// No message of a service is shown in greater length.
const MAX_MESSAGE_CHARS: usize = 300;

/// Why there is no answer. No secret is in any of them.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// What came on standard input is no request.
    #[error(transparent)]
    Request(#[from] AuthorError),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// A file is missing or wrong.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What about it; never its content.
        what: String,
        /// The operating system's word, where it had one.
        #[source]
        source: Option<io::Error>,
    },
    /// Configuration in the environment is wrong or contradicts itself.
    #[error("{0}")]
    Environment(String),
    /// The proxy setting is wrong.
    #[error(transparent)]
    Proxy(#[from] HttpsProxyError),
    /// A service could not be asked.
    #[error("{service} cannot be asked")]
    Unreachable {
        /// Which.
        service: &'static str,
        /// Why.
        source: HttpError,
    },
    /// A service said no.
    #[error("{service} refused: {status}{}", code_and_message(code, message))]
    Rejected {
        /// Which.
        service: &'static str,
        /// Its HTTP status.
        status: u16,
        /// Its own name for the error.
        code: String,
        /// What it says, shortened, without anything we sent.
        message: String,
    },
    /// A service said yes and something nobody understands.
    #[error("{service} answered with {what}")]
    Answer {
        /// Which.
        service: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// No source has credentials.
    #[error("no credentials for {service}: {tried}")]
    NoCredentials {
        /// For what.
        service: &'static str,
        /// What was looked at.
        tried: String,
    },
    /// The service account does not say who it is to be.
    #[error("{0}")]
    ServiceAccount(String),
    /// It would send a credential where none belongs.
    #[error("{0}")]
    Policy(String),
}

fn code_and_message(code: &str, message: &str) -> String {
    match (code.is_empty(), message.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!(" {code}"),
        (true, false) => format!(" ({message})"),
        (false, false) => format!(" {code} ({message})"),
    }
}

impl RegistryError {
    /// The exit code, as everywhere in navicert: 1 no, 2 usage, 3 a bad file, 4 nobody there, 5 denied by policy.
    pub fn exit_code(&self) -> u8 {
        match self {
            RegistryError::Usage(_) => 2,
            RegistryError::File { .. } | RegistryError::Environment(_) | RegistryError::Proxy(_) => 3,
            RegistryError::Unreachable { source: HttpError::Redirected { .. }, .. }
            | RegistryError::Policy(_) => 5,
            RegistryError::Unreachable { .. } => 4,
            _ => 1,
        }
    }

    /// What usually helps.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RegistryError::Rejected { service: "ECR Public", status: 400 | 403, .. } => Some(
                "it needs ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken; without them, leave \
                 public.ecr.aws out of matchImages: images there can be pulled without a login",
            ),
            RegistryError::Rejected { service: "ECR", status: 400 | 403, code, .. }
                if code.contains("AccessDenied") =>
            {
                Some("the role needs ecr:GetAuthorizationToken")
            }
            RegistryError::Rejected { code, .. }
                if code.contains("Signature") || code.contains("RequestExpired") =>
            {
                Some("look at this machine's clock first, then at the secret key")
            }
            RegistryError::Rejected { service: "STS", status: 403, .. } => {
                Some("does the role's trust policy name this issuer, audience and service account?")
            }
            RegistryError::Unreachable {
                service: "EC2's metadata server",
                source: HttpError::TimedOut { .. },
            } => Some("from inside a container it needs a hop limit of 2 in the instance's metadata options"),
            RegistryError::Unreachable { service: "Google's metadata server", .. } => Some(
                "is this machine on Google Compute Engine, and may this process reach its metadata server?",
            ),
            RegistryError::Unreachable {
                service: "ECR" | "ECR Public" | "STS",
                source: HttpError::Resolve { .. },
            } => Some("is the region right, and does this machine's DNS know it?"),
            RegistryError::Unreachable {
                source: HttpError::Resolve { .. } | HttpError::Connect { .. },
                ..
            } => Some("a proxy is set with HTTPS_PROXY"),
            RegistryError::Unreachable { source: HttpError::Tls { .. }, .. } => {
                Some("certificate authorities come from this machine's store; SSL_CERT_FILE names others")
            }
            _ => None,
        }
    }
}

/// An error with everything behind it, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

/// A service's refusal, with its words made harmless: short, one line, and without anything of the request that might
/// be a secret. AWS, for one, repeats signed headers when a signature does not fit.
pub(crate) fn rejection(
    service: &'static str,
    request: &HttpRequest,
    reply: &HttpResponse,
    code: &str,
    message: &str,
) -> RegistryError {
    let message = message.lines().next().unwrap_or_default();
    let mut shown = redact_request_values(message, request);
    if shown.chars().count() > MAX_MESSAGE_CHARS {
        shown = shown.chars().take(MAX_MESSAGE_CHARS).chain(['…']).collect();
    }
    let code: String =
        code.chars().filter(|c| c.is_ascii_alphanumeric() || "._-#:".contains(*c)).take(80).collect();
    let code = redact_request_values(&code, request);
    RegistryError::Rejected {
        service,
        status: reply.status,
        code,
        message: redact::terminal(&shown).into_owned(),
    }
}

/// Shorter values are words, not secrets.
const MIN_SECRET_BYTES: usize = 12;

fn redact_request_values(text: &str, request: &HttpRequest) -> String {
    let headers = request.headers.iter().map(|(_, value)| value.clone());
    let body = request.body.iter().flat_map(|body| {
        let body = std::str::from_utf8(body.expose()).unwrap_or_default();
        let pieces = body.split(['&', '=', '"', ',', ':', '{', '}']);
        // A form is escaped, and whoever repeats it may have undone that.
        let plain =
            |piece: &str| String::from_utf8_lossy(&Zeroizing::new(percent_decode(piece))).into_owned();
        pieces
            .flat_map(|piece| [Secret::new(piece.to_owned()), Secret::new(plain(piece))])
            .collect::<Vec<_>>()
    });
    let mut shown = text.to_owned();
    for secret in headers.chain(body) {
        let known = PUBLIC_VALUES.contains(&secret.expose().as_str());
        if secret.expose().len() >= MIN_SECRET_BYTES && !known {
            shown = shown.replace(secret.expose().as_str(), "…");
        }
    }
    shown
}

/// What requests say that is no secret and may well be in an answer.
const PUBLIC_VALUES: [&str; 2] = ["application/json", "AssumeRoleWithWebIdentity"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::http::HttpUrl;

    #[test]
    fn what_a_service_repeats_of_a_request_is_not_shown() {
        let token = "canary+token/with=signs==";
        let url = HttpUrl::https("a.example", "/");
        let form =
            Form::new().field("assertion", token).request(url.clone()).header("x-session", "canary-session");
        let json =
            HttpRequest::new("POST", url).body("application/json", format!(r#"{{"subject":"{token}"}}"#));
        let reply = HttpResponse { status: 401, headers: Vec::new(), body: Secret::default() };
        for (request, said) in [
            (&form, format!("bad token {token}, sorry")),
            (&form, "bad token canary%2Btoken%2Fwith%3Dsigns%3D%3D".to_owned()),
            (&form, "x-session:canary-session".to_owned()),
            (&json, format!("bad token {token}, sorry")),
        ] {
            let shown = rejection("it", request, &reply, "Code", &said).to_string();
            assert!(!shown.contains("canary"), "{shown}");
        }
        let request = HttpRequest::new("GET", HttpUrl::https("a.example", "/"));
        let long =
            rejection("it", &request, &reply, "A <b>\u{1b}", &format!("{}\nsecond line", "x".repeat(1_000)));
        let shown = long.to_string();
        assert!(shown.starts_with("it refused: 401 Ab (xxx") && shown.ends_with("x…)"), "{shown}");
        assert!(!shown.contains("second"), "{shown}");
    }
}
