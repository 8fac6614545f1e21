//! Authentication of local gateway clients: the random token, from a process of the same user, and not from a web
//! page. Rejects a wrong token, `Host` or `Origin`, other users, and IPv6 loopback.

use std::fmt;
use std::net::SocketAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use http::header::{AUTHORIZATION, HeaderValue, ORIGIN};
use http::request;
use navicert_go::base64::RAW_URL;
use navicert_io::connection_owner;
use navicert_types::Secret;
use zeroize::Zeroizing;

use crate::forward::host_of;
use crate::problem::Problem;

/// The gateway's token and address.
pub(crate) struct LocalAuth {
    /// `Bearer …`, the whole header value.
    authorization: Secret<String>,
    /// `127.0.0.1:port`.
    authority: String,
    uid: u32,
}

/// A random token: 256 bits in URL-safe base64.
///
/// # Errors
/// The system provides no random numbers.
pub(crate) fn random_token() -> Result<Secret<String>, aws_lc_rs::error::Unspecified> {
    let mut random = Zeroizing::new([0u8; 32]);
    aws_lc_rs::rand::fill(&mut *random)?;
    Ok(Secret::from(RAW_URL.encode(*random)))
}

impl LocalAuth {
    /// For a gateway at this address.
    pub(crate) fn new(token: &Secret<String>, address: SocketAddr) -> Self {
        LocalAuth {
            authorization: Secret::from(format!("Bearer {}", token.expose())),
            authority: address.to_string(),
            uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// Whether the connection comes from loopback and from a process that is known to be this user's.
    pub(crate) fn admits(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        peer.ip().is_loopback() && connection_owner::owner(peer, local).is_some_and(|owner| owner == self.uid)
    }

    /// Authenticates a request.
    ///
    /// # Errors
    /// 401 for a missing or wrong token; 403 for a foreign `Host` or `Origin`, which protects against DNS rebinding.
    pub(crate) fn check(&self, head: &request::Parts) -> Result<(), Problem> {
        if host_of(&head.uri, &head.headers) != Some(self.authority.as_str()) {
            return Err(Problem::Forbidden(format!("unknown host, this gateway is {}", self.authority)));
        }
        let is_ours = |origin: &HeaderValue| {
            origin.to_str().ok().and_then(|origin| origin.strip_prefix("https://")) == Some(&*self.authority)
        };
        if head.headers.get_all(ORIGIN).iter().any(|origin| !is_ours(origin)) {
            return Err(Problem::Forbidden("requests of web pages are not allowed".to_owned()));
        }
        let given = head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        verify_slices_are_equal(given, self.authorization.expose().as_bytes())
            .map_err(|_| Problem::Unauthorized)
    }
}

impl fmt::Debug for LocalAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalAuth").field("authority", &self.authority).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn code(auth: &LocalAuth, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri("/version");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        auth.check(&head).map_or_else(|problem| problem.code().0.as_u16(), |()| 200)
    }

    #[test]
    fn accepts_only_the_right_token_for_the_right_host() {
        let token = Secret::from("t0ken".to_owned());
        let auth = LocalAuth::new(&token, SocketAddr::from(([127, 0, 0, 1], 6443)));
        let good = ("authorization", "Bearer t0ken");
        let host = ("host", "127.0.0.1:6443");
        assert_eq!(code(&auth, &[host, good]), 200);
        assert_eq!(code(&auth, &[host, good, ("origin", "https://127.0.0.1:6443")]), 200);
        for wrong in ["Bearer t0kex", "Bearer t0ken ", "bearer t0ken", "Bearer", "Basic t0ken", "t0ken", ""] {
            assert_eq!(code(&auth, &[host, ("authorization", wrong)]), 401, "{wrong}");
        }
        assert_eq!(code(&auth, &[host]), 401);
        for name in ["localhost:6443", "[::1]:6443", "127.0.0.1", "127.0.0.1:6444", "evil.example:6443", ""] {
            assert_eq!(code(&auth, &[("host", name), good]), 403, "{name}");
        }
        assert_eq!(code(&auth, &[good]), 403, "no host");
        for page in ["https://evil.example", "null", "http://127.0.0.1:6443", "https://127.0.0.1"] {
            assert_eq!(code(&auth, &[host, good, ("origin", page)]), 403, "{page}");
        }
        assert!(!format!("{auth:?}").contains("t0ken"));
    }

    #[test]
    fn admits_only_connections_known_to_be_of_this_user() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let auth = LocalAuth::new(&Secret::from("t0ken".to_owned()), local);
        let client = std::net::TcpStream::connect(local).unwrap();
        let peer = client.local_addr().unwrap();
        assert!(auth.admits(peer, local));
        let another_user = LocalAuth { uid: auth.uid.wrapping_add(1), ..auth };
        assert!(!another_user.admits(peer, local));
        // No such connection: nothing says whose it is.
        let auth = LocalAuth { uid: rustix::process::geteuid().as_raw(), ..another_user };
        for unknown in ["127.0.0.1:1", "[::1]:1"] {
            assert!(!auth.admits(unknown.parse().unwrap(), local), "{unknown}");
        }
        assert!(!auth.admits("192.0.2.1:1".parse().unwrap(), local));
    }

    #[test]
    fn random_tokens_are_long_and_distinct() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert_eq!(one.expose().len(), 43);
        assert_ne!(one.expose(), other.expose());
    }
}
