//! Servers that are not API servers, are unavailable, or are reached at another port than intended.

use navicert_testkit::cli::tools;
use navicert_testkit::net::answer::Cut;
use navicert_testkit::{Answer, HttpServer, Program, RawServer, Step, wait};
use serde_json::json;

use super::setup::{Setup, check, check_fix, version};

const OTHER_SERVER: &str =
    "correct the server of cluster `east`: `https://127.0.0.1:[PORT]` is not a Kubernetes API server";
const UNAVAILABLE: &str = "check the API server behind `https://127.0.0.1:[PORT]`: it is down or not ready";

/// A server over TLS that gives every request this answer.
fn answering(answer: Answer) -> (Setup, HttpServer) {
    let setup = Setup::new();
    let server = HttpServer::builder().otherwise(move |_| answer.clone()).start(&setup.ca);
    (setup.server(&server), server)
}

#[test]
fn servers_that_are_not_api_servers_are_recognised_before_a_credential_is_sent() {
    for (name, answer) in [
        ("server-404", Answer::status(404)),
        ("server-404-html", Answer::bytes("text/html; charset=utf-8", "<h1>Not Found</h1>").with_status(404)),
        ("server-html", Answer::bytes("text/html", "<h1>Welcome to nginx!</h1>")),
        ("server-json", Answer::json(&json!({"status": "ok"}))),
        ("server-version-of-other-software", Answer::json(&json!({"version": "2.1"}))),
        ("server-405", Answer::status(405)),
        ("server-410", Answer::status(410)),
        ("server-204", Answer::status(204)),
    ] {
        let (setup, server) = answering(answer);
        check_fix(name, OTHER_SERVER, setup.context(34));
        let sent: Vec<_> =
            server.requests().into_iter().filter(|request| request.path() == "/version").collect();
        assert!(sent.iter().any(|request| request.bearer_token().is_none()), "{name}");
        let told = server.requests().iter().filter(|request| request.path().contains("selfsubject")).count();
        assert_eq!(told, 0, "{name}: the credential is not sent to another server");
    }
    let setup = Setup::new();
    let script = vec![Step::read_head(), Step::write("220 mail.example ESMTP\r\n")];
    let server = RawServer::start_tls(&setup.ca, script);
    let url = format!("https://{}", server.address());
    check_fix("server-of-another-protocol", OTHER_SERVER, setup.cluster("server", json!(url)).context(34));
}

#[test]
fn plugins_are_not_run_for_servers_that_are_not_api_servers() {
    let (setup, _server) = answering(Answer::status(404));
    check_fix("server-404-plugin", OTHER_SERVER, setup.plugin("v1beta1").context(34));
}

#[test]
fn unavailable_servers_are_distinguished_from_wrong_ones() {
    for (name, status) in [("server-500", 500), ("server-502", 502), ("server-503", 503), ("server-504", 504)]
    {
        let answer = Answer::bytes("text/html", "<h1>error</h1>").with_status(status);
        let (setup, _server) = answering(answer);
        check_fix(name, UNAVAILABLE, setup.context(34));
    }
    let closes =
        "check the API server at `https://127.0.0.1:[PORT]`: it closes connections without a response";
    for (name, how) in [("server-closes-connection", Cut::Clip), ("server-resets-connection", Cut::Reset)] {
        let (setup, _server) = answering(Answer::cut(how));
        check_fix(name, closes, setup.context(34));
    }
    let overloaded = "check the API server at `https://127.0.0.1:[PORT]`: it is overloaded or unavailable";
    for (name, answer) in [
        ("request-429", Answer::failure(429, "TooManyRequests", "too many requests, please try again later")),
        ("request-500", Answer::failure(500, "InternalError", "etcdserver: request timed out")),
    ] {
        let setup = Setup::new();
        setup.api.answer("/version", version());
        setup.api.answer("/api*", answer);
        check_fix(name, overloaded, setup.context(34));
    }
}

#[test]
fn login_pages_and_gateways_in_front_of_the_api_server_are_recognised() {
    let redirect = Answer::redirect(302, "https://login.example/authorize?state=canary-unknown-token");
    let (setup, _server) = answering(redirect);
    check_fix("request-redirected-to-login", OTHER_SERVER, setup.context(34));
    let setup = Setup::new();
    setup.api.answer("/version", version());
    setup.api.answer("/api*", Answer::bytes("text/html", "<form action='/login'>"));
    check_fix("request-answered-by-login-page", OTHER_SERVER, setup.context(34));
    let (setup, _server) = answering(Answer::text("Unauthorized").with_status(401));
    check_fix(
        "request-401-of-gateway",
        "give user `ann` a token that this cluster accepts",
        setup.context(34),
    );
    let (setup, _server) = answering(Answer::text("Forbidden by policy 7").with_status(403));
    let blocked =
        "check what stands in front of the API server at `https://127.0.0.1:[PORT]`: it rejects the request";
    check_fix("request-403-of-gateway", blocked, setup.context(34));
}

#[test]
fn servers_without_self_subject_reviews_are_asked_for_their_api_versions() {
    let missing = || Answer::failure(404, "NotFound", "the server could not find the requested resource");
    let old = |user| {
        let setup = Setup::new().user(json!({"token": user}));
        for version in ["v1", "v1beta1", "v1alpha1"] {
            setup.api.answer(&format!("/apis/authentication.k8s.io/{version}/selfsubjectreviews"), missing());
        }
        setup
    };
    check("old-server", "no problems found", old(super::KNOWN).context(34));
    let setup = old(super::OPAQUE);
    setup.api.answer("/apis*", Answer::status(404));
    let fix = "give user `ann` a token that this cluster accepts";
    check_fix("old-server-unknown-token", fix, setup.context(34));
    let setup = old(super::KNOWN);
    setup.api.answer("/version", version());
    setup.api.answer("/api", Answer::status(404));
    check_fix("server-with-version-only", OTHER_SERVER, setup.context(34));
    let setup = old(super::KNOWN).stripping();
    for version in ["v1", "v1beta1", "v1alpha1"] {
        setup.api.answer(&format!("/apis/authentication.k8s.io/{version}/selfsubjectreviews"), missing());
    }
    let fix = "set the server of cluster `east` to the API server's own address: a load balancer or proxy at `https://127.0.0.1:[PORT]` removes the credential";
    check_fix("old-server-strips-credential", fix, setup.context(34));
}

/// kube-apiserver's HTTP library answers plain HTTP on its TLS port with a text of its own; so does that of this registry.
#[test]
fn plain_http_to_a_server_in_go_is_explained() {
    let Some(registry) = tools::installed("docker-registry", "docker-registry") else { return };
    let setup = Setup::new();
    let dir = tempfile::tempdir().unwrap();
    setup.ca.server().issue().write_to(dir.path(), "server");
    let config = "version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: data}}\n\
                  http: {addr: '127.0.0.1:0', tls: {certificate: server.crt, key: server.key}}\n";
    std::fs::write(dir.path().join("config.yml"), config).unwrap();
    let server = Program::new(registry).arguments(["serve", "config.yml"]).directory(dir.path());
    let server = server.start_running().unwrap();
    let log = wait::blocking(server.wait_for_output(", tls"));
    let address = log.split_once("listening on ").unwrap().1.split(',').next().unwrap();
    let fix = "set the server of cluster `east` to `https://127.0.0.1:[PORT]`";
    check_fix("http-to-go-tls-port", fix, setup.at(&format!("http://{address}")).context(34));
}

#[test]
fn plain_http_and_tls_are_told_apart() {
    let setup = Setup::new();
    let plain = setup.api.url().replace("https://", "http://");
    let fix = "set the server of cluster `east` to `https://127.0.0.1:[PORT]`";
    check_fix("http-to-tls-port", fix, setup.cluster("server", json!(plain)).context(34));
    let setup = Setup::new();
    let bare = setup.api.url().replace("https://", "");
    check_fix("no-scheme-to-tls-port", fix, setup.cluster("server", json!(bare)).context(34));
    let setup = Setup::new();
    let server = RawServer::start(vec![Step::write("SSH-2.0-OpenSSH_9.2\r\n"), Step::ReadToEnd]);
    let url = format!("https://{}", server.address());
    let fix = "correct the server of cluster `east`: `https://127.0.0.1:[PORT]` is another service";
    check_fix("tls-to-ssh-port", fix, setup.cluster("server", json!(url)).context(34));
    let setup = Setup::new();
    let server = RawServer::start(Vec::new());
    let url = format!("https://{}", server.address());
    let fix =
        "check what listens at `https://127.0.0.1:[PORT]`: it closes connections during the TLS handshake";
    check_fix("connection-closed-in-handshake", fix, setup.cluster("server", json!(url)).context(34));
}

#[test]
fn invalid_host_names_do_not_pass_dns() {
    for (name, host) in [("host-with-empty-label", "bad..host:6443"), ("host-with-space", "bad host:6443")] {
        let setup = Setup::new().cluster("server", json!(format!("https://{host}")));
        check_fix(name, "write the server of cluster `east` as https://host:port", setup.context(34));
        let text = std::fs::read_to_string(super::page(name)).unwrap();
        assert!(!text.contains("PASS  dns"), "{name}");
    }
    let setup = Setup::new().cluster("tls-server-name", json!("not a name"));
    check_fix("invalid-tls-server-name", "correct `tls-server-name` of cluster `east`", setup.context(34));
}
