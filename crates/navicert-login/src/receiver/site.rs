//! The addresses that a receiver serves, and the cookie that ties a browser to its start link.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::error::Unspecified;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{COOKIE, HeaderValue};
use navicert_types::Secret;

use super::ResponseMode;
use super::redirect::RedirectUri;

/// Random bytes of the start link, of its cookie and of the last page's address.
const ID_BYTES: usize = 16;

/// The paths and the cookie of one receiver.
#[derive(Debug)]
pub(super) struct LoginSite {
    redirect: RedirectUri,
    start_path: String,
    start_url: String,
    done_path: String,
    cookie_name: String,
    cookie_value: Secret<String>,
}

/// What a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Start,
    Callback,
    Done,
    Unknown,
}

impl LoginSite {
    // L902, L724
    pub(super) fn new(redirect: RedirectUri) -> Result<Self, Unspecified> {
        let mut suffix = [0; 4];
        aws_lc_rs::rand::fill(&mut suffix)?;
        let start_path = format!("/start/{}", random_id()?);
        Ok(LoginSite {
            start_url: format!("{}{start_path}", redirect.origin()),
            start_path,
            done_path: format!("/done/{}", random_id()?),
            cookie_name: format!("navicert_{:08x}", u32::from_be_bytes(suffix)),
            cookie_value: Secret::from(random_id()?),
            redirect,
        })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        self.redirect.as_str()
    }

    pub(super) fn start_url(&self) -> &str {
        &self.start_url
    }

    pub(super) fn done_path(&self) -> &str {
        &self.done_path
    }

    /// The values of `Host` that requests may have.
    pub(super) fn authorities(&self) -> &[String] {
        self.redirect.authorities()
    }

    pub(super) fn place(&self, path: &str) -> Place {
        let is = |own: &str| verify_slices_are_equal(path.as_bytes(), own.as_bytes()).is_ok();
        match () {
            () if path == self.redirect.path() => Place::Callback,
            () if is(&self.start_path) => Place::Start,
            () if is(&self.done_path) => Place::Done,
            () => Place::Unknown,
        }
    }

    /// Whether a request carries the cookie. Other cookies of this host, and other values of the name, do not matter.
    pub(super) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| {
            let expected = self.cookie_value.expose().as_bytes();
            name == self.cookie_name && verify_slices_are_equal(value.as_bytes(), expected).is_ok()
        })
    }

    /// `Set-Cookie` for the start link itself, so that it can be opened again, and for the callback. The provider's page sends a
    /// `form_post` answer as a cross-site request, for which browsers hold back `SameSite=Lax` cookies: of the two forms
    /// without that rule each browser takes one.
    pub(super) fn set_cookies(&self, mode: ResponseMode) -> Vec<HeaderValue> {
        let callback = self.redirect.path();
        let forms: &[(&str, &str)] = match mode {
            ResponseMode::Query => &[("SameSite=Lax", callback)],
            ResponseMode::FormPost => &[("SameSite=None; Secure", callback), ("", callback)],
        };
        let start = [("SameSite=Lax", self.start_path.as_str())];
        let values = start.iter().chain(forms).map(|(same_site, path)| {
            let separator = if same_site.is_empty() { "" } else { "; " };
            let (name, value) = (&self.cookie_name, self.cookie_value.expose());
            format!("{name}={value}; HttpOnly{separator}{same_site}; Path={path}")
        });
        let values = values.filter_map(|value| HeaderValue::from_str(&value).ok());
        values
            .map(|mut value| {
                value.set_sensitive(true);
                value
            })
            .collect()
    }
}

fn random_id() -> Result<String, Unspecified> {
    let mut bytes = [0; ID_BYTES];
    aws_lc_rs::rand::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
