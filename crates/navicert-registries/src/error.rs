//! Provider errors: one variant per cause that a user can act on, each with its exit code.

use std::io;
use std::path::PathBuf;

use navicert_image::author::AuthorError;
use navicert_types::{Secret, redact};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::http::{HttpError, HttpRequest, HttpResponse};
use crate::percent::percent_decode;

/// Maximum length of a service's message in errors.
const MAX_MESSAGE_CHARS: usize = 300;

/// Why a provider failed. Errors never contain secrets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum RegistryError {
    /// The request on standard input is invalid.
    #[error(transparent)]
    Request(#[from] AuthorError),
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file is missing or invalid.
    #[error("failed to load `{}`: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause, without the file's content.
        what: String,
        /// I/O error reported by the operating system, if any.
        #[source]
        source: Option<io::Error>,
    },
    /// The configuration in the environment is invalid or contradictory.
    #[error("{0}")]
    Environment(String),
    /// A service is unreachable.
    #[error("failed to reach {service}")]
    Unreachable {
        /// The service.
        service: &'static str,
        /// The cause.
        source: HttpError,
    },
    /// A service rejected the request.
    #[error("{service} rejected the request: {status}{}", code_and_message(code, message))]
    Rejected {
        /// The service.
        service: &'static str,
        /// Its HTTP status.
        status: u16,
        /// The service's error code.
        code: String,
        /// The service's message, shortened and without values of the request.
        message: String,
    },
    /// A service's response is invalid.
    #[error("invalid response from {service}: {what}")]
    InvalidResponse {
        /// The service.
        service: &'static str,
        /// The cause.
        what: &'static str,
    },
    /// No credential source is configured.
    #[error("no credentials for {service}: {tried}")]
    NoCredentials {
        /// The service that needs credentials.
        service: &'static str,
        /// Why each source has none.
        tried: String,
    },
    /// The service account has no usable identity.
    #[error("{0}")]
    ServiceAccount(String),
    /// A credential would be sent to a host that must not get it.
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
    /// The exit code: 1 failure, 2 usage, 3 invalid file, 4 unreachable, 5 denied by policy.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            RegistryError::Usage(_) => 2,
            RegistryError::File { .. }
            | RegistryError::Environment(_)
            | RegistryError::Unreachable { source: HttpError::InvalidProxy { .. }, .. } => 3,
            RegistryError::Unreachable { source: HttpError::Redirected { .. }, .. }
            | RegistryError::Policy(_) => 5,
            RegistryError::Unreachable { .. } => 4,
            _ => 1,
        }
    }

    /// A hint for common causes.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            RegistryError::Rejected { service: "ECR Public", status: 400 | 403, .. } => Some(
                "grant ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken, or remove \
                 public.ecr.aws from matchImages: its images can be pulled anonymously",
            ),
            RegistryError::Rejected { service: "ECR", status: 400 | 403, code, .. }
                if code.contains("AccessDenied") =>
            {
                Some("grant ecr:GetAuthorizationToken to the role")
            }
            RegistryError::Rejected { code, .. }
                if code.contains("Signature") || code.contains("RequestExpired") =>
            {
                Some("check this machine's clock, then the secret key")
            }
            RegistryError::Rejected { service: "STS", status: 403, .. } => {
                Some("check that the role's trust policy allows this issuer, audience and service account")
            }
            RegistryError::Unreachable {
                service: "the EC2 metadata server",
                source: HttpError::TimedOut { .. },
            } => Some("inside a container, set the hop limit in the instance metadata options to 2"),
            RegistryError::Unreachable { service: "the Google metadata server", .. } => Some(
                "check that this machine runs on Google Compute Engine and that the process can reach its metadata server",
            ),
            RegistryError::Unreachable {
                service: "ECR" | "ECR Public" | "STS",
                source: HttpError::Resolve { .. },
            } => Some("check the region and this machine's DNS"),
            RegistryError::Unreachable {
                source: HttpError::Resolve { .. } | HttpError::Connect { .. },
                ..
            } => Some("if a proxy is required, set HTTPS_PROXY"),
            RegistryError::Unreachable { source: HttpError::Tls { .. }, .. } => {
                Some("the system root certificates are used; set SSL_CERT_FILE to use others")
            }
            _ => None,
        }
    }
}

/// The error for a rejected request. The service's message is shortened to one line and stripped of request values that
/// may be secrets; AWS, for example, repeats signed headers if a signature does not match.
pub(crate) fn rejection(
    service: &'static str,
    request: &HttpRequest,
    response: &HttpResponse,
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
        status: response.status,
        code,
        message: redact::line(&shown).into_owned(),
    }
}

/// Shorter values are not treated as secrets.
const MIN_SECRET_BYTES: usize = 12;

fn redact_request_values(text: &str, request: &HttpRequest) -> String {
    let headers = request.headers.iter().map(|(_, value)| value.clone());
    let body = request.body.iter().flat_map(|body| {
        let body = std::str::from_utf8(body.expose()).unwrap_or_default();
        let pieces = body.split(['&', '=', '"', ',', ':', '{', '}']);
        // Form values are percent-encoded, and the service may repeat them decoded.
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

/// Request values that are not secret and may appear in a message.
const PUBLIC_VALUES: [&str; 2] = ["application/json", "AssumeRoleWithWebIdentity"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::http::HttpUrl;

    #[test]
    fn removes_request_values_from_service_messages() {
        let token = "canary+token/with=signs==";
        let url = HttpUrl::https("a.example", "/");
        let form =
            Form::new().field("assertion", token).request(url.clone()).header("x-session", "canary-session");
        let json =
            HttpRequest::new("POST", url).body("application/json", format!(r#"{{"subject":"{token}"}}"#));
        let response = HttpResponse { status: 401, headers: Vec::new(), body: Secret::default() };
        for (request, said) in [
            (&form, format!("bad token {token}, sorry")),
            (&form, "bad token canary%2Btoken%2Fwith%3Dsigns%3D%3D".to_owned()),
            (&form, "x-session:canary-session".to_owned()),
            (&json, format!("bad token {token}, sorry")),
        ] {
            let shown = rejection("it", request, &response, "Code", &said).to_string();
            assert!(!shown.contains("canary"), "{shown}");
        }
        let request = HttpRequest::new("GET", HttpUrl::https("a.example", "/"));
        let long = rejection(
            "it",
            &request,
            &response,
            "A <b>\u{1b}",
            &format!("{}\nsecond line", "x".repeat(1_000)),
        );
        let shown = long.to_string();
        assert!(
            shown.starts_with("it rejected the request: 401 Ab (xxx") && shown.ends_with("x…)"),
            "{shown}"
        );
        assert!(!shown.contains("second"), "{shown}");
    }
}
