//! The pages that the browser shows at the end of a login: static HTML without script or external resource.
//!
//! Every text that is not written here is untrusted: `escape` cleans, cuts and escapes it.

mod escape;
mod render;
mod style;

pub(crate) use render::{Notice, notice, outcome, redirect};

/// The page for the end of a login. Every text may be untrusted: it is escaped and cut when the page is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutcomePage {
    /// The tokens were checked and stored.
    LoggedIn {
        /// The user, as in the session's `display`.
        display: String,
        /// The issuer's host.
        issuer_host: String,
    },
    /// The tokens were checked and stored, and the browser goes to another page (`--open-url-after-authentication`).
    Redirect {
        /// `http` or `https`; for anything else the page of [`OutcomePage::LoggedIn`] is shown.
        url: String,
        /// As in [`OutcomePage::LoggedIn`].
        display: String,
        /// As in [`OutcomePage::LoggedIn`].
        issuer_host: String,
    },
    /// The login failed.
    NotLoggedIn {
        /// What happened, in one sentence.
        reason: String,
        /// What to do.
        help: Option<String>,
        /// The provider's `error`.
        provider_error: Option<String>,
        /// The provider's `error_description`.
        provider_description: Option<String>,
    },
}

impl OutcomePage {
    /// Where the browser goes instead of showing a page.
    // L934
    pub(crate) fn redirect_url(&self) -> Option<&str> {
        let OutcomePage::Redirect { url, .. } = self else { return None };
        crate::browser::OpenableUrl::parse(url).is_ok().then_some(url)
    }
}
