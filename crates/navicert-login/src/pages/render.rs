//! HTML and headers of every response of the receiver.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use http_body_util::Full;

use super::OutcomePage;
use super::escape::escape;
use super::style::{STYLE, content_security_policy};

// Shares of untrusted texts, escaped, so that a page stays below 4 KiB.
const MAX_NAME_BYTES: usize = 600;
const MAX_SENTENCE_BYTES: usize = 500;
const MAX_CODE_BYTES: usize = 150;
const MAX_DESCRIPTION_BYTES: usize = 700;

/// A page that is not the end of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The start link was used by another browser.
    LinkUsed,
    /// The login has its answer.
    AlreadyAnswered,
    /// The callback was opened without an answer.
    NoAnswer,
    /// The answer belongs to another login.
    WrongState,
    /// A parameter occurs twice.
    Ambiguous,
    /// The answer comes from a browser that did not open the start link.
    AnotherBrowser,
    /// A POST request is not a form.
    NotAForm,
    /// The form is too large, or it was not sent completely.
    TooLarge,
    /// The request is for another host.
    ForeignHost,
    /// A page sent the request.
    NotANavigation,
    /// The path is unknown.
    NotFound,
    /// The method is not allowed.
    MethodNotAllowed,
}

impl Notice {
    fn content(self) -> (StatusCode, &'static str, &'static str) {
        const FROM_TERMINAL: &str = "Open the link that your terminal shows.";
        const WITHOUT_EFFECT: &str = "The login that is waiting is not affected.";
        match self {
            Notice::LinkUsed => (
                StatusCode::GONE,
                "Link already used",
                "This link has been used. Open the one in your terminal, in the browser that used it first.",
            ),
            Notice::AlreadyAnswered => (
                StatusCode::CONFLICT,
                "Already answered",
                "This login has been answered. You can close this page and go back to your terminal.",
            ),
            Notice::NoAnswer => (StatusCode::BAD_REQUEST, "No login here", FROM_TERMINAL),
            Notice::WrongState => (
                StatusCode::BAD_REQUEST,
                "Another login",
                "This answer belongs to another login, or to none. Open the link that your terminal shows.",
            ),
            Notice::Ambiguous => (StatusCode::BAD_REQUEST, "Ambiguous answer", WITHOUT_EFFECT),
            Notice::AnotherBrowser => (
                StatusCode::FORBIDDEN,
                "Another browser",
                "This answer comes from a browser that did not start the login. Open the link that your terminal shows.",
            ),
            Notice::NotAForm => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Not a form", WITHOUT_EFFECT),
            Notice::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Answer too large", WITHOUT_EFFECT),
            Notice::ForeignHost => (StatusCode::MISDIRECTED_REQUEST, "Wrong address", WITHOUT_EFFECT),
            Notice::NotANavigation => (StatusCode::FORBIDDEN, "Not allowed", WITHOUT_EFFECT),
            Notice::NotFound => (StatusCode::NOT_FOUND, "Not found", FROM_TERMINAL),
            Notice::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Not allowed", WITHOUT_EFFECT),
        }
    }
}

/// A page that is not the end of a login.
pub(crate) fn notice(notice: Notice) -> Response<Full<Bytes>> {
    let (status, title, text) = notice.content();
    let mut response = respond(status, page(title, "", &format!("<h1>{title}</h1>\n<p>{text}</p>")));
    if notice == Notice::MethodNotAllowed {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

/// The end of a login.
// L932
pub(crate) fn outcome(outcome: &OutcomePage) -> Response<Full<Bytes>> {
    let html = match outcome {
        OutcomePage::LoggedIn { display, issuer_host }
        | OutcomePage::Redirect { display, issuer_host, .. } => logged_in(display, issuer_host),
        OutcomePage::NotLoggedIn { reason, help, provider_error, provider_description } => {
            not_logged_in(reason, help.as_deref(), provider_error.as_deref(), provider_description.as_deref())
        }
    };
    respond(StatusCode::OK, html)
}

/// Sends the browser to another address. An address that is no header value is an error of the caller: nothing is sent.
pub(crate) fn redirect(target: &str) -> Response<Full<Bytes>> {
    let Ok(mut location) = HeaderValue::from_str(target) else {
        return notice(Notice::NotFound);
    };
    // It may hold the state of the login.
    location.set_sensitive(true);
    let mut response = respond(StatusCode::SEE_OTHER, String::new());
    response.headers_mut().insert(LOCATION, location);
    response
}

fn logged_in(display: &str, issuer_host: &str) -> String {
    let (display, host) = (escape(display, MAX_NAME_BYTES), escape(issuer_host, MAX_NAME_BYTES));
    page(
        "Logged in",
        "good",
        &format!(
            "<h1>Logged in</h1>\n\
             <p>You are <strong><bdi>{display}</bdi></strong> at <strong><bdi>{host}</bdi></strong>.</p>\n\
             <p>You can close this page and go back to your terminal.</p>"
        ),
    )
}

fn not_logged_in(
    reason: &str,
    help: Option<&str>,
    provider_error: Option<&str>,
    provider_description: Option<&str>,
) -> String {
    let mut content = format!(
        "<div role=\"alert\">\n<h1>Not logged in</h1>\n<p><bdi>{}</bdi></p>\n</div>\n",
        escape(reason, MAX_SENTENCE_BYTES)
    );
    if let Some(help) = help {
        content += &format!("<p><bdi>{}</bdi></p>\n", escape(help, MAX_SENTENCE_BYTES));
    }
    if provider_error.is_some() || provider_description.is_some() {
        content += "<dl>\n";
        if let Some(error) = provider_error {
            let error = escape(error, MAX_CODE_BYTES);
            content +=
                &format!("<dt>The provider's error code</dt><dd><code><bdi>{error}</bdi></code></dd>\n");
        }
        if let Some(description) = provider_description {
            let description = escape(description, MAX_DESCRIPTION_BYTES);
            content += &format!("<dt>The provider's description</dt><dd><bdi>{description}</bdi></dd>\n");
        }
        content += "</dl>\n";
    }
    content += "<p>You can close this page and go back to your terminal.</p>";
    page("Not logged in", "bad", &content)
}

/// A whole page; every argument is HTML.
fn page(title: &str, class: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main class=\"{class}\">\n{content}\n</main>\n</body>\n</html>\n"
    )
}

// L931
fn respond(status: StatusCode, html: String) -> Response<Full<Bytes>> {
    const HEADERS: [(HeaderName, &str); 7] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (http::header::CACHE_CONTROL, "no-store"),
        (http::header::REFERRER_POLICY, "no-referrer"),
        (http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (http::header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (http::header::CONNECTION, "close"),
    ];
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static(content_security_policy());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

#[cfg(test)]
mod tests;
