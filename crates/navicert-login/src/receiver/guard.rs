//! Which connections and requests are looked at: the owner of the connection, `Host`, and what browsers say about a request.

use std::net::SocketAddr;

use http::header::{HOST, ORIGIN};
use http::{Method, request};

/// What is known about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// A process of this user opened it.
    SameUser,
    /// Unknown, or root: a relay of a virtual machine or a container, or another user behind it. The callback must carry
    /// the cookie of the start link.
    NeedsCookie,
}

/// Decides whose connection is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnerCheck {
    uid: u32,
    is_enabled: bool,
}

impl OwnerCheck {
    /// Connections of this user.
    pub(super) fn new() -> Self {
        OwnerCheck { uid: rustix::process::geteuid().as_raw(), is_enabled: true }
    }

    /// As on systems that do not tell owners.
    #[cfg(test)]
    pub(super) fn unknown() -> Self {
        OwnerCheck { is_enabled: false, ..Self::new() }
    }

    /// `None`: another user's connection, which is closed without an answer.
    // L903
    pub(super) fn admit(self, peer: SocketAddr, local: SocketAddr) -> Option<Trust> {
        let owner = self.is_enabled.then(|| navicert_io::connection_owner::owner(peer, local)).flatten();
        self.trust(owner)
    }

    fn trust(self, owner: Option<u32>) -> Option<Trust> {
        match owner {
            Some(owner) if owner == self.uid => Some(Trust::SameUser),
            Some(0) | None => Some(Trust::NeedsCookie),
            Some(_) => None,
        }
    }
}

/// Why a request is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// `Host` is none of ours: a name that was made to resolve to this machine.
    ForeignHost,
    /// A page sent the request, not a person's browser on its way to a page.
    NotANavigation,
}

/// Checks what every request must satisfy, whatever its path.
pub(super) fn check_head(head: &request::Parts, authorities: &[String]) -> Result<(), Rejection> {
    if !has_own_host(head, authorities) {
        return Err(Rejection::ForeignHost);
    }
    // L905. Browsers of before 2023 do not send these headers.
    let is_absent_or =
        |name: &str, expected: &str| head.headers.get_all(name).iter().all(|value| value == expected);
    let is_navigation =
        is_absent_or("sec-fetch-mode", "navigate") && is_absent_or("sec-fetch-dest", "document");
    let is_sent_by_page = head.method == Method::GET && head.headers.contains_key(ORIGIN);
    if is_navigation && !is_sent_by_page { Ok(()) } else { Err(Rejection::NotANavigation) }
}

// L904
fn has_own_host(head: &request::Parts, authorities: &[String]) -> bool {
    let is_own = |host: &str| authorities.iter().any(|own| own.eq_ignore_ascii_case(host));
    let mut hosts = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let has_own_target = head.uri.authority().is_none_or(|authority| is_own(authority.as_str()));
    has_own_target && host.to_str().is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(method: Method, uri: &str, headers: &[(&str, &str)]) -> Result<(), Rejection> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let own = ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"].map(str::to_owned);
        check_head(&request.body(()).unwrap().into_parts().0, &own)
    }

    #[test]
    fn foreign_hosts_are_rejected() {
        // L904, L1311
        for host in ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"] {
            assert_eq!(check(Method::GET, "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "",
            "evil.example:8000",
            "127.0.0.1",
            "127.0.0.1:8001",
            "127.0.0.1:8000.evil.example",
            "::1:8000",
        ] {
            assert_eq!(check(Method::GET, "/", &[("host", host)]), Err(Rejection::ForeignHost), "{host}");
        }
        assert_eq!(check(Method::GET, "/", &[]), Err(Rejection::ForeignHost));
        let twice = [("host", "localhost:8000"), ("host", "localhost:8000")];
        assert_eq!(check(Method::GET, "/", &twice), Err(Rejection::ForeignHost));
        let own = [("host", "localhost:8000")];
        assert_eq!(check(Method::GET, "http://localhost:8000/", &own), Ok(()));
        assert_eq!(check(Method::GET, "http://evil.example:8000/", &own), Err(Rejection::ForeignHost));
    }

    #[test]
    fn requests_of_pages_are_rejected() {
        // L905
        let with = |method: &Method, name: &str, value: &str| {
            check(method.clone(), "/", &[("host", "localhost:8000"), (name, value)])
        };
        for method in [Method::GET, Method::POST] {
            assert_eq!(with(&method, "sec-fetch-mode", "navigate"), Ok(()));
            assert_eq!(with(&method, "sec-fetch-dest", "document"), Ok(()));
            for mode in ["no-cors", "cors", "same-origin", "websocket", "", "navigate, cors"] {
                assert_eq!(with(&method, "sec-fetch-mode", mode), Err(Rejection::NotANavigation), "{mode}");
            }
            for dest in ["iframe", "frame", "object", "embed", "image", "empty", ""] {
                assert_eq!(with(&method, "sec-fetch-dest", dest), Err(Rejection::NotANavigation), "{dest}");
            }
        }
        assert_eq!(with(&Method::GET, "origin", "https://evil.example"), Err(Rejection::NotANavigation));
        assert_eq!(with(&Method::GET, "origin", "null"), Err(Rejection::NotANavigation));
        // A form that the provider's page posts.
        assert_eq!(with(&Method::POST, "origin", "https://login.example"), Ok(()));
    }

    #[test]
    fn connections_of_other_users_are_not_served() {
        // L903. Root may be a relay, and Linux reports closed sockets as root's: not trusted without the cookie.
        let of = |uid| OwnerCheck { uid, is_enabled: true };
        assert_eq!(of(1000).trust(Some(1000)), Some(Trust::SameUser));
        assert_eq!(of(1000).trust(Some(1001)), None);
        assert_eq!(of(1000).trust(Some(0)), Some(Trust::NeedsCookie));
        assert_eq!(of(1000).trust(None), Some(Trust::NeedsCookie));
        assert_eq!(of(0).trust(Some(0)), Some(Trust::SameUser));
        assert_eq!(of(0).trust(Some(1000)), None);
        assert_eq!(of(0).trust(None), Some(Trust::NeedsCookie));
    }
}
