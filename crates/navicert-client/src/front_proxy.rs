//! What an API server makes of a front proxy's certificate. A front proxy authenticates users itself and names them in headers
//! such as `X-Remote-User`; the API server accepts the headers from certificates of `--requestheader-client-ca-file`.

use std::fmt;

use http::{HeaderName, HeaderValue, StatusCode};

use crate::transport::Transport;
use crate::whoami::{WhoamiError, whoami, whoami_with_headers};

/// User name for finding out whether an API server accepts identity headers.
pub const PROBE_USER: &str = "navicert:self-check";

/// The first version of kube-apiserver that does not start if users and front proxies share a certificate authority and
/// `--requestheader-allowed-names` is empty.
// V7
const ALLOWED_NAMES_REQUIRED_SINCE: (u32, u32) = (1, 35);

/// What an API server makes of a front proxy's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrontProxyTrust {
    /// It accepts identity headers with the certificate. Without headers, the certificate names no user.
    Trusted,
    /// It accepts identity headers with the certificate, and the certificate as a user's.
    Shared(SharedAuthority),
    /// It accepts the certificate as this user's, and ignores identity headers.
    HeadersIgnored {
        /// The user.
        user: String,
    },
    /// It accepts the certificate neither for a front proxy nor for a user.
    Rejected,
}

impl FrontProxyTrust {
    /// What to change, unless nothing is wrong.
    pub fn to_do(&self) -> Option<String> {
        let flags = "--requestheader-client-ca-file";
        match self {
            FrontProxyTrust::Trusted => None,
            FrontProxyTrust::Shared(shared) => Some(shared.to_do()),
            FrontProxyTrust::HeadersIgnored { user } => Some(format!(
                "check the API server's flags: {flags} has to vouch for the certificate, --requestheader-allowed-names to be \
                 empty or to list `{user}`, and --requestheader-username-headers to name the header"
            )),
            FrontProxyTrust::Rejected => Some(format!(
                "check the API server's flags: {flags} has to vouch for the certificate, and --requestheader-allowed-names to \
                 be empty or to list its common name"
            )),
        }
    }
}

impl fmt::Display for FrontProxyTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrontProxyTrust::Trusted => {
                f.write_str("the API server accepts identity headers from the proxy's certificate")
            }
            FrontProxyTrust::Shared(shared) => shared.fmt(f),
            FrontProxyTrust::HeadersIgnored { user } => write!(
                f,
                "the API server authenticates the proxy's certificate as user `{user}` and ignores identity headers"
            ),
            FrontProxyTrust::Rejected => f.write_str(
                "the API server does not accept the proxy's certificate, neither for identity headers nor as a user's",
            ),
        }
    }
}

/// A front proxy's certificate is a user's, too: one certificate authority vouches for both kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAuthority {
    /// The user that the certificate names: its common name.
    pub user: String,
    /// The API server's version, such as `(1, 34)`, if known.
    pub version: Option<(u32, u32)>,
}

impl SharedAuthority {
    /// Whether the API server would not have started without `--requestheader-allowed-names`.
    pub(crate) fn requires_allowed_names(&self) -> bool {
        self.version.is_some_and(|version| version >= ALLOWED_NAMES_REQUIRED_SINCE)
    }

    fn to_do(&self) -> String {
        let own = "give front proxies a certificate authority of their own (--requestheader-client-ca-file)";
        match self.requires_allowed_names() {
            true => own.to_owned(),
            false => {
                format!("set the API server's --requestheader-allowed-names to `{}`, or {own}", self.user)
            }
        }
    }
}

impl fmt::Display for SharedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedAuthority { user, .. } = self;
        write!(
            f,
            "the API server accepts the proxy's certificate as user `{user}`, too: front proxies and users have a \
             certificate authority in common"
        )?;
        match self.requires_allowed_names() {
            true => write!(
                f,
                ", so that every other certificate with a name of --requestheader-allowed-names, such as `{user}`, can name \
                 any user"
            ),
            false => f.write_str(
                "; if --requestheader-allowed-names is empty, every client certificate can name any user, and kube-apiserver \
                 1.35 and later does not start",
            ),
        }
    }
}

/// Finds out what the API server makes of a transport's certificate, by naming a user in this header. `version` is the API
/// server's, if known.
///
/// # Errors
/// [`WhoamiError`]: the API server did not say.
pub async fn front_proxy_trust(
    transport: &Transport,
    user_header: &HeaderName,
    version: Option<(u32, u32)>,
) -> Result<FrontProxyTrust, WhoamiError> {
    let named = [(user_header.clone(), HeaderValue::from_static(PROBE_USER))];
    match username(whoami_with_headers(transport, &named).await)? {
        None => return Ok(FrontProxyTrust::Rejected),
        Some(user) if user != PROBE_USER => return Ok(FrontProxyTrust::HeadersIgnored { user }),
        Some(_) => {}
    }
    Ok(match username(whoami(transport).await)? {
        Some(user) if user != "system:anonymous" => {
            FrontProxyTrust::Shared(SharedAuthority { user, version })
        }
        _ => FrontProxyTrust::Trusted,
    })
}

/// The user; `None` if the server authenticated none.
fn username(
    reviewed: Result<crate::whoami::SelfSubjectReview, WhoamiError>,
) -> Result<Option<String>, WhoamiError> {
    match reviewed {
        Ok(review) => Ok(Some(navicert_types::redact::line(&review.user.username).into_owned())),
        Err(WhoamiError::Rejected { status: StatusCode::UNAUTHORIZED, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use navicert_testkit::{Answer, ApiServer, Ca};
    use serde_json::json;

    use super::*;
    use crate::context::ClientContext;
    use crate::credential::{Credential, StaticCredential};
    use crate::transport::{TransportSettings, Trust};

    const HEADER: HeaderName = HeaderName::from_static("x-corp-user");

    /// An API server that takes the header's user, or that of the certificate, or none.
    async fn trust(takes_header: bool, certificate: Option<&'static str>) -> FrontProxyTrust {
        let ca = Ca::new("root");
        let api = ApiServer::start(&ca);
        api.answer_with(ApiServer::WHO_AM_I, move |request| {
            let header = request.header("x-corp-user").filter(|_| takes_header);
            match header.or(certificate) {
                Some(user) => {
                    Answer::json(&json!({"status": {"userInfo": {"username": user}}})).with_status(201)
                }
                None => Answer::unauthorized(),
            }
        });
        let settings = TransportSettings {
            trust: Trust::Pem(ca.pem().into_bytes()),
            ..TransportSettings::new(api.url())
        };
        let credential = Arc::new(StaticCredential::new(Credential::anonymous()));
        let transport = Transport::new(settings, credential, ClientContext::system()).unwrap();
        front_proxy_trust(&transport, &HEADER, Some((1, 34))).await.unwrap()
    }

    // V7
    #[tokio::test]
    async fn the_four_results_are_distinguished() {
        let shared = SharedAuthority { user: "proxy".to_owned(), version: Some((1, 34)) };
        assert_eq!(trust(true, None).await, FrontProxyTrust::Trusted);
        assert_eq!(trust(true, Some("system:anonymous")).await, FrontProxyTrust::Trusted);
        assert_eq!(trust(true, Some("proxy")).await, FrontProxyTrust::Shared(shared));
        let ignored = FrontProxyTrust::HeadersIgnored { user: "proxy".to_owned() };
        assert_eq!(trust(false, Some("proxy")).await, ignored);
        assert_eq!(trust(false, None).await, FrontProxyTrust::Rejected);
    }

    // V7: up to 1.34, and if the version is not known, the flag may be missing; later versions would not have started.
    #[test]
    fn allowed_names_are_recommended_where_they_may_be_missing() {
        for (version, is_set) in
            [(None, false), (Some((1, 34)), false), (Some((1, 35)), true), (Some((2, 0)), true)]
        {
            let shared = SharedAuthority { user: "proxy".to_owned(), version };
            assert_eq!(shared.requires_allowed_names(), is_set, "{version:?}");
            let (text, to_do) = (shared.to_string(), FrontProxyTrust::Shared(shared).to_do().unwrap());
            assert_eq!(text.contains("1.35 and later does not start"), !is_set, "{text}");
            assert_eq!(to_do.contains("--requestheader-allowed-names to `proxy`"), !is_set, "{to_do}");
            assert!(to_do.contains("a certificate authority of their own"), "{to_do}");
        }
    }
}
