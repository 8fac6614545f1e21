//! The page of the provider that ends the browser's own session (RP-initiated logout). Its address with the ID token goes to the
//! browser through the loopback receiver alone, so that it is in no argument list and no terminal.

use navicert_types::Secret;

use crate::browser::{self, OpenableUrl};
use crate::cache::Entry;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::provider::{Form, Metadata};
use crate::random;
use crate::receiver::{ListenAddress, Receiver, ReceiverSettings, RedirectTarget};
use crate::request::LoginRequest;

/// Where the browser's own session ends. `Debug` shows no token.
#[derive(Clone, Debug)]
pub struct EndSession {
    page: String,
    with_token: Secret<String>,
}

impl EndSession {
    /// The page for an entry, if the provider has one.
    ///
    /// # Errors
    /// The system provides no random numbers.
    // L1103
    pub(super) fn new(
        metadata: &Metadata,
        entry: &Entry,
        redirect_url: Option<&str>,
    ) -> Result<Option<Self>, LoginError> {
        let Some(endpoint) = metadata.end_session_endpoint.as_deref() else { return Ok(None) };
        let mut query = Form::new();
        query.add("client_id", &entry.key.client_id);
        if let Some(url) = redirect_url {
            query.add("post_logout_redirect_uri", url);
            query.add("state", random::secret()?.expose());
        }
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        let page = format!("{endpoint}{separator}{}", query.as_str());
        if let Some(token) = &entry.id_token {
            query.add("id_token_hint", token.expose());
        }
        let with_token = Secret::new(format!("{endpoint}{separator}{}", query.as_str()));
        Ok(Some(EndSession { page, with_token }))
    }

    /// The address without the ID token, for people: the provider asks them to confirm.
    pub fn page(&self) -> &str {
        &self.page
    }
}

/// Opens the page in the browser of a request, and returns when the browser has been sent to it.
///
/// # Errors
/// There is no browser, or it did not come in time.
// L1102
pub fn end_browser_session(
    end_session: &EndSession,
    request: &LoginRequest,
    context: &LoginContext,
) -> Result<(), LoginError> {
    let browser = browser::find(request, context)?;
    let runtime = crate::runtime::runtime()?;
    let limit = request.login_limit();
    let result = runtime.block_on(async {
        let settings = ReceiverSettings {
            addresses: vec![ListenAddress::FREE_PORT],
            redirect: RedirectTarget::LOOPBACK_ADDRESS,
            tls: None,
        };
        let receiver = Receiver::bind(&settings)
            .map_err(|error| LoginError::PortTaken { addresses: error.to_string() })?;
        let start_url = receiver.start_url().to_owned();
        let opening = async {
            let is_opened = match (browser, OpenableUrl::parse(&start_url)) {
                (Some(browser), Ok(url)) => tokio::task::spawn_blocking(move || browser.open(&url))
                    .await
                    .is_ok_and(|opened| opened.is_ok()),
                _ => false,
            };
            if !is_opened {
                context.messages.show(&format!("To end the session of your browser, open {start_url}"));
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = receiver.serve_redirect(end_session.with_token.clone()) => Ok(()),
            () = opening => Ok(()),
            () = context.timer.sleep(limit) => Err(LoginError::TimedOut { limit }),
        }
    });
    // A browser's opener may still run on a thread of the runtime.
    runtime.shutdown_background();
    result
}
