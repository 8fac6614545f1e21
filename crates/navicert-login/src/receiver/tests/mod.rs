//! The receiver over real sockets: a raw client plays browser, page, other user and garbage.

mod addresses;
mod attacks;
mod limits;
mod login;

use std::pin::Pin;
use std::time::Duration;

use navicert_testkit::RawClient;
use navicert_testkit::wait::within;

use super::callback::tests_support;
use super::guard::OwnerCheck;
use super::*;

const AUTHORIZATION_URL: &str = "https://login.example/authorize?state=right";
const CALLBACK: &str = "/callback?code=abc&state=right&iss=https%3A%2F%2Flogin.example";

/// An address and what the receiver says about itself.
#[derive(Clone, Debug)]
struct Site {
    address: SocketAddr,
    start_path: String,
}

impl Site {
    fn of(receiver: &Receiver) -> Self {
        let (_, start_path) = receiver.start_url().split_once("/start/").unwrap();
        Site { address: receiver.sockets.first(), start_path: format!("/start/{start_path}") }
    }

    async fn get(&self, target: &str) -> Reply {
        self.get_with(target, &[]).await
    }

    async fn get_with(&self, target: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = format!("GET {target} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        self.send(format!("{request}\r\n").as_bytes()).await
    }

    async fn post(&self, target: &str, content_type: &str, body: &str) -> Reply {
        let (host, length) = (self.address, body.len());
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nOrigin: https://login.example\r\n\
             Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        self.send(format!("{head}{body}").as_bytes()).await
    }

    async fn send(&self, bytes: &[u8]) -> Reply {
        let mut client = RawClient::connect(self.address).await;
        // The server may close before it has read everything.
        let _ = client.try_write(bytes).await;
        Reply::parse(&client.read_to_end(64 << 10).await)
    }
}

/// A response; status 0 if the connection was closed without one.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    fn location(&self) -> &str {
        self.headers("location").first().copied().unwrap_or_default()
    }

    /// The cookie that the browser sends back.
    fn cookie(&self) -> String {
        self.headers("set-cookie")[0].split(';').next().unwrap().to_owned()
    }
}

fn settings(addresses: &[&str], redirect: RedirectTarget) -> ReceiverSettings {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    ReceiverSettings { addresses, redirect, tls: None }
}

fn bind() -> Receiver {
    Receiver::bind(&settings(&["127.0.0.1:0"], RedirectTarget::LOOPBACK_ADDRESS)).unwrap()
}

/// A receiver that does not know the owners of connections, as on macOS and Windows.
fn bind_without_owners() -> Receiver {
    Receiver { owners: OwnerCheck::unknown(), ..bind() }
}

fn pending_login() -> PendingLogin {
    let login = tests_support::login(true);
    assert_eq!(login.authorization_url.expose(), AUTHORIZATION_URL);
    login
}

type Outcome = Result<String, AnswerError>;

/// What a grant does with an answer: here it only keeps it.
async fn keep(answer: Result<Secret<String>, AnswerError>) -> (Outcome, OutcomePage) {
    let page = match &answer {
        Ok(_) => OutcomePage::LoggedIn {
            display: "ann@example.com".to_owned(),
            issuer_host: "login.example".to_owned(),
        },
        Err(error) => OutcomePage::NotLoggedIn {
            reason: error.to_string(),
            help: None,
            provider_error: match error {
                AnswerError::Provider { error, .. } => Some(error.clone()),
                _ => None,
            },
            provider_description: match error {
                AnswerError::Provider { description, .. } => description.clone(),
                _ => None,
            },
        },
    };
    (answer.map(|code| code.expose().clone()), page)
}

/// Boxed: the state of a server and of its client together is large.
type BoxFuture<'t, T> = Pin<Box<dyn Future<Output = T> + 't>>;

/// Serves a login while `client` acts; both must end.
fn serve_while<'t, T: 't>(
    receiver: Receiver,
    client: impl Future<Output = T> + 't,
) -> BoxFuture<'t, (Outcome, T)> {
    serve_login_while(receiver, pending_login(), client)
}

fn serve_login_while<'t, T: 't>(
    receiver: Receiver,
    login: PendingLogin,
    client: impl Future<Output = T> + 't,
) -> BoxFuture<'t, (Outcome, T)> {
    let serving = receiver.serve(login, keep);
    Box::pin(within("the login and its client", async { tokio::join!(serving, client) }))
}

/// Finishes the login as the user's browser does, and returns its last page.
async fn finish(site: &Site) -> Reply {
    let answered = site.get(CALLBACK).await;
    assert_eq!(answered.status, 303, "{answered:?}");
    site.get(answered.location()).await
}

/// Does what `client` does to a waiting login, which must not change it: afterwards the browser finishes it.
fn survives<'t, T: 't>(receiver: Receiver, client: impl AsyncFnOnce(&Site) -> T + 't) -> BoxFuture<'t, T> {
    Box::pin(async {
        let site = Site::of(&receiver);
        let (outcome, result) = serve_while(receiver, async {
            let result = client(&site).await;
            let page = finish(&site).await;
            assert!(page.body.contains("<title>Logged in</title>"), "{page:?}");
            result
        })
        .await;
        assert_eq!(outcome, Ok("abc".to_owned()));
        result
    })
}
