//! A person who answers a login of the test suite's provider, without a browser.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;

use navicert_testkit::LoginProvider;
use navicert_testkit::services::login_provider::form;

/// One request of a browser: `Location`, else the whole answer; nothing if the program is gone.
pub(crate) fn browse(url: &str) -> Option<String> {
    let (authority, path) = split(url);
    let mut stream = TcpStream::connect(authority).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let is_location = |name: &str| name.eq_ignore_ascii_case("location");
    let headers = text.lines().filter_map(|line| line.split_once(": "));
    let location = headers.into_iter().find(|(name, _)| is_location(name)).map(|(_, value)| value.to_owned());
    Some(location.unwrap_or(text))
}

/// The address that a login without a browser shows; nothing if the program ends before.
pub(crate) fn start_link(stderr: impl Read) -> Option<String> {
    let lines = BufReader::new(stderr).lines().map_while(Result::ok);
    lines.into_iter().find_map(|line| {
        let mut words = line.split_whitespace().filter(|word| word.starts_with("http://"));
        words.next_back().map(str::to_owned)
    })
}

/// Opens that address, logs in, and reads the last page, as far as the program lives.
pub(crate) fn answer(provider: &LoginProvider, start: &str) -> Option<String> {
    let authorization = browse(start)?;
    let parameters = form(authorization.split_once('?')?.1);
    let nonce = parameters.get("nonce").cloned().unwrap_or_default();
    provider.state().codes.insert("the-code".to_owned(), nonce);
    let (authority, path) = split(parameters.get("redirect_uri")?);
    let state = parameters.get("state")?;
    let done = browse(&format!("http://{authority}{path}?code=the-code&state={state}"))?;
    if done.starts_with('/') { browse(&format!("http://{authority}{done}")) } else { Some(done) }
}

/// Host with port, and path.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash))
}
