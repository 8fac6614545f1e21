//! Proxies on the way to the server: which setting names them, and why they fail.

use std::net::{SocketAddr, TcpListener};

use navicert_testkit::{Ca, ConnectProxy, RawServer, Step, TestContext};
use serde_json::json;

use super::setup::{Setup, check, check_fix};

/// A host that no resolver is asked for: the proxy resolves it.
const SERVER: &str = "https://api.example:6443";

/// A port on which nothing listens.
fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A proxy that answers every connection with this text.
fn answering(text: &str) -> RawServer {
    RawServer::start(vec![Step::read_head(), Step::write(text), Step::ReadToEnd])
}

fn setup() -> Setup {
    let setup = Setup::new();
    setup.api.present(&setup.ca.server().name("api.example").issue());
    setup.cluster("server", json!(SERVER))
}

fn with_variable(name: &str, proxy: &str) -> TestContext {
    setup().context(34).variable(name, proxy)
}

#[test]
fn proxies_that_cannot_be_reached_are_named_with_their_setting() {
    let proxy = format!("http://{}", closed_port());
    for variable in ["HTTPS_PROXY", "https_proxy"] {
        let name =
            if variable == "HTTPS_PROXY" { "proxy-variable-down" } else { "proxy-lower-case-variable-down" };
        let fix = format!("correct {variable}: proxy `http://127.0.0.1:[PORT]` does not accept connections");
        check_fix(name, &fix, with_variable(variable, &proxy));
    }
    let fix = "correct HTTPS_PROXY: proxy `socks5://127.0.0.1:[PORT]` does not accept connections";
    check_fix("socks-proxy-down", fix, with_variable("HTTPS_PROXY", &proxy.replace("http:", "socks5:")));
    let setup = Setup::new().cluster("proxy-url", json!(proxy));
    let fix =
        "correct `proxy-url` of cluster `east`: proxy `http://127.0.0.1:[PORT]` does not accept connections";
    check_fix("proxy-url-down", fix, setup.context(34));
    let setup = Setup::new().cluster("server", json!("http://api.example:8080"));
    let fix = "correct HTTP_PROXY: proxy `http://127.0.0.1:[PORT]` does not accept connections";
    check_fix("http-proxy-down", fix, setup.context(34).variable("HTTP_PROXY", &proxy));
    let label = format!("http://{}.example:3128", "n".repeat(64));
    let fix = format!("correct HTTPS_PROXY: the host of proxy `{label}` does not resolve");
    check_fix("proxy-without-address", &fix, with_variable("HTTPS_PROXY", &label));
}

#[test]
fn proxies_that_reject_the_connection_are_explained() {
    let avoid = "check that proxy `http://127.0.0.1:[PORT]` (HTTPS_PROXY) may and can connect to `api.example:6443`, or add `api.example` to NO_PROXY";
    for (name, fix, response) in [
        (
            "proxy-407",
            "put the proxy's user name and password into HTTPS_PROXY",
            "407 Proxy Authentication Required",
        ),
        ("proxy-403", avoid, "403 Forbidden"),
        ("proxy-502", avoid, "502 Bad Gateway"),
        ("proxy-503", avoid, "503 Service Unavailable"),
    ] {
        let proxy = answering(&format!("HTTP/1.1 {response}\r\ncontent-length: 0\r\n\r\n"));
        check_fix(name, fix, with_variable("HTTPS_PROXY", &format!("http://{}", proxy.address())));
    }
    let proxy = answering("SSH-2.0-OpenSSH_9.2\r\n\r\n");
    let fix = "correct HTTPS_PROXY: `http://127.0.0.1:[PORT]` is not a proxy";
    check_fix(
        "proxy-is-another-service",
        fix,
        with_variable("HTTPS_PROXY", &format!("http://{}", proxy.address())),
    );
    let proxy = RawServer::start_tls(&Ca::new("proxy root"), vec![Step::read_head()]);
    let fix = "correct HTTPS_PROXY: TLS with proxy `https://127.0.0.1:[PORT]` fails";
    check_fix(
        "proxy-with-untrusted-certificate",
        fix,
        with_variable("HTTPS_PROXY", &format!("https://{}", proxy.address())),
    );
    let fix = "correct HTTPS_PROXY, or unset it";
    check_fix("proxy-with-unknown-scheme", fix, with_variable("HTTPS_PROXY", "ftp://127.0.0.1:3128"));
    let setup = Setup::new().cluster("proxy-url", json!("ftp://127.0.0.1:3128"));
    let fix = "write the proxy as http://host:port, https://… or socks5://…";
    check_fix("proxy-url-with-unknown-scheme", fix, setup.context(34));
}

#[test]
fn failures_behind_a_working_proxy_are_those_of_the_server() {
    let setup = setup();
    let proxy = ConnectProxy::start(setup.api.address()).url();
    check("proxy-works", "no problems found", setup.context(34).variable("HTTPS_PROXY", &proxy));
    setup.api.present(&Ca::new("another root").server().name("api.example").issue());
    let fix =
        "replace the certificate authority of cluster `east` with the one that issued the server certificate";
    check_fix("proxy-to-server-of-another-authority", fix, setup.context(34).variable("HTTPS_PROXY", &proxy));
    setup.api.present(&setup.ca.server().name("api.example").issue());
    let setup = setup.user(json!({"token": super::OPAQUE}));
    let fix = "give user `ann` a token that this cluster accepts";
    check_fix("proxy-and-unknown-token", fix, setup.context(34).variable("HTTPS_PROXY", &proxy));
}
