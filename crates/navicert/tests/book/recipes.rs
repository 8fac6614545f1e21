//! The recipes with servers: the pages' own files and commands, between an issuer, an API server and other people's programs.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use navicert_testkit::cli::program::Running;
use navicert_testkit::cli::tools;
use navicert_testkit::net::http_server::Request;
use navicert_testkit::{
    Answer, ApiServer, Ca, HttpClient, HttpServer, Issuer, Kubeconfig, Program, TestContext, wait,
};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::commands::fence;
use super::quick_starts::{Prepared, context};
use super::read;

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
/// The audience of the examples.
const AUDIENCE: &str = "https://kubernetes.example.com";
/// How the pages name the proxy.
const PROXY: &str = "https://navicert.example:8443";

/// An issuer, and an API server with `navicert serve proxy` in front of it.
struct Cluster {
    ca: Ca,
    issuer: Issuer,
    api: ApiServer,
}

impl Cluster {
    fn new() -> Self {
        let ca = Ca::new("recipes");
        let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
        api.answer_with(ApiServer::WHO_AM_I, impersonated);
        Cluster { ca, issuer, api }
    }

    /// A configuration of examples/authentication with this issuer in it.
    fn configuration(&self, example: &str) -> String {
        let text = read(&format!("examples/authentication/{example}.yaml"));
        let url = text.lines().find(|line| line.starts_with("    url: ")).unwrap();
        let (issuer, authority) = (self.issuer.issuer_url(), json!(self.ca.pem()));
        text.replacen(url, &format!("    url: {issuer}\n    certificateAuthority: {authority}"), 1)
    }

    fn token(&self, subject: &str, audience: &str, more: &Value) -> String {
        let mut claims = self.issuer.claims(subject, audience, SystemClock.now());
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.issuer.token(&claims)
    }

    /// The files that the commands of both servers name.
    fn write(&self, context: TestContext, configuration: &str) -> TestContext {
        let (server, proxy) = (self.ca.server().issue(), self.ca.client("navicert-proxy").issue());
        let upstream =
            Kubeconfig::new(self.api.url()).ca_file("navicert-ca.crt").certificate("proxy.crt", "proxy.key");
        context
            .file("auth.yaml", configuration)
            .file("tls.crt", &server.chain_pem())
            .file("tls.key", &server.key_pem())
            .file("navicert-ca.crt", &self.ca.pem())
            .file("proxy.crt", &proxy.chain_pem())
            .file("proxy.key", &proxy.key_pem())
            .file("upstream.kubeconfig", &upstream.to_string())
    }

    /// The proxy of this command line, and its address.
    fn serve(context: &TestContext, command: &str) -> (Running, SocketAddr) {
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("navicert"));
        // Another port on loopback: that of the page may be in use.
        let words = words.map(|word| if word.starts_with("127.0.0.1:") { "127.0.0.1:0" } else { word });
        let running = Program::new(NAVICERT)
            .arguments(words)
            .arguments(["--health-listen", "127.0.0.1:0"])
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", context.home())
            .directory(&context.directory())
            .start_running()
            .unwrap();
        let printed = wait::blocking(running.wait_for_output("listening on "));
        let line = printed.lines().find(|line| line.contains("listening on ")).unwrap();
        let mut addresses = line.split([' ', ',']).filter_map(|word| word.parse::<SocketAddr>().ok());
        let (address, health) = (addresses.next().unwrap(), addresses.next().unwrap());
        wait::blocking(wait::within("the issuer's keys", async {
            let client = HttpClient::trusting(&Ca::new("unused"));
            let url = format!("http://{health}/readyz?verbose");
            while client.get(&url).await.unwrap().text().contains("[-]issuers") {
                tokio::task::yield_now().await;
            }
        }));
        (running, address)
    }

    /// A page's kubeconfig, for the proxy that runs here with this configuration.
    fn with_proxy(self, page: &str, configuration: &str, context: TestContext) -> Prepared {
        let context = self.write(context, configuration);
        let proxy = fence("docs/recipes/dashboard.md", "for nginx, the webhook", "sh");
        let (running, address) = Cluster::serve(&context, proxy.lines().next().unwrap());
        let kubeconfig = fence(page, "kubeconfig", "yaml").replace(PROXY, &format!("https://{address}"));
        let context = context.file("config", &kubeconfig).variable("KUBECONFIG", "config");
        Prepared { context, _servers: Box::new((self, running)) }
    }
}

/// The user that the proxy impersonates, as an API server answers.
fn impersonated(request: &Request) -> Answer {
    let Some(user) = request.header("impersonate-user") else { return Answer::unauthorized() };
    let mut groups = request.header_values("impersonate-group");
    groups.push("system:authenticated");
    Answer::json(&json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
        "status": {"userInfo": {"username": user, "groups": groups}},
    }))
}

/// The configuration for GitHub Actions in the proxy, and the token service of a runner.
pub(crate) fn ci_job() -> Option<Prepared> {
    tools::installed("curl", "curl")?;
    let cluster = Cluster::new();
    let claims = json!({
        "repository": "example/shop", "repository_owner": "example", "repository_owner_id": "123456",
        "ref": "refs/heads/main", "environment": "production", "event_name": "push",
        "run_id": "1", "workflow_ref": "example/shop/.github/workflows/deploy.yaml@refs/heads/main",
    });
    let token = cluster.token("repo:example/shop:environment:production", AUDIENCE, &claims);
    let runner = HttpServer::start_plain();
    runner.answer_with("/token*", move |request| {
        let is_job = request.header("authorization") == Some("bearer of-this-job");
        let is_asked_for =
            request.query().is_some_and(|query| query.ends_with(&format!("&audience={AUDIENCE}")));
        match is_job && is_asked_for {
            true => Answer::json(&json!({"count": 1, "value": token})),
            false => Answer::status(401),
        }
    });
    let context = context()
        .variable("ACTIONS_ID_TOKEN_REQUEST_URL", &runner.url_of("/token?api-version=2.0"))
        .variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-this-job");
    let configuration = cluster.configuration("github-actions");
    let Prepared { context, _servers } =
        cluster.with_proxy("docs/recipes/ci-job.md", &configuration, context);
    Some(Prepared { context, _servers: Box::new((_servers, runner)) })
}

/// The configuration for SPIFFE in the proxy, and a JWT-SVID in its file.
pub(crate) fn spiffe() -> Option<Prepared> {
    let cluster = Cluster::new();
    let svid = cluster.token("spiffe://example.org/ns/shop/sa/frontend", AUDIENCE, &json!({}));
    let configuration = cluster.configuration("spiffe");
    let context = context().file("svid.jwt", &svid);
    Some(cluster.with_proxy("docs/recipes/spiffe.md", &configuration, context))
}

/// The dashboard of the page: it forwards `/clusters/prod/…` with the caller's token, and has no credential of its own.
fn dashboard(proxy: SocketAddr, ca: &Ca) -> HttpServer {
    let server = HttpServer::start_plain();
    server.answer("/", Answer::text("the page"));
    let ca = ca.clone();
    server.answer_with_future("/clusters/prod/*", move |request: Request| {
        let client = HttpClient::trusting(&ca);
        async move {
            let path = request.path().trim_start_matches("/clusters/prod").to_owned();
            let mut forwarded = http::Request::get(format!("https://{proxy}{path}"));
            if let Some(authorization) = request.header("authorization") {
                forwarded = forwarded.header("authorization", authorization);
            }
            let reply = client.send(forwarded.body(bytes::Bytes::new()).unwrap()).await.unwrap();
            Answer::text(reply.text()).with_status(reply.status.as_u16())
        }
    });
    server
}

/// nginx with the page's server block, its addresses replaced.
fn nginx(directory: &Path, webhook: SocketAddr, dashboard: SocketAddr) -> Option<(Running, SocketAddr)> {
    let program = tools::installed("nginx", "nginx")?;
    // Free a moment ago; nginx takes it at once.
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = fence("docs/recipes/dashboard.md", "nginx serves the pages", "nginx")
        .replace("127.0.0.1:8080", &listen.to_string())
        .replace("127.0.0.1:4466", &dashboard.to_string())
        .replace("127.0.0.1:9443", &webhook.to_string());
    let dir = directory.display();
    let config = format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  {server}
}}
"
    );
    std::fs::write(directory.join("nginx.conf"), config).unwrap();
    let running = Program::new(program)
        .arguments(["-e", "stderr", "-c"])
        .arguments([directory.join("nginx.conf")])
        .start_running()
        .unwrap();
    wait::blocking(wait::within("nginx listens", async {
        while tokio::net::TcpStream::connect(listen).await.is_err() {
            tokio::task::yield_now().await;
        }
    }));
    Some((running, listen))
}

#[test]
fn dashboard_behind_nginx_and_the_proxy_acts_as_the_user() {
    let cluster = Cluster::new();
    let context = cluster.write(context(), &cluster.configuration("keycloak"));
    let commands = fence("docs/recipes/dashboard.md", "for nginx, the webhook", "sh");
    let commands: Vec<&str> = commands.lines().collect();
    let [proxy, webhook] = commands.try_into().unwrap();
    let (_proxy, proxy) = Cluster::serve(&context, proxy);
    let (_webhook, webhook) = Cluster::serve(&context, webhook);
    let dashboard = dashboard(proxy, &cluster.ca);
    let Some((_nginx, listen)) = nginx(&context.directory(), webhook, dashboard.address()) else { return };
    let claims = json!({"preferred_username": "ann", "typ": "ID", "azp": "kubernetes", "groups": ["ops"]});
    let good = cluster.token("1", "kubernetes", &claims);
    let other = cluster.token("1", "another", &claims);
    let ask = |path: &str, token: Option<&str>| {
        let client = HttpClient::trusting(&Ca::new("unused"));
        let mut request = http::Request::get(format!("http://{listen}{path}"));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        wait::blocking(client.send(request.body(bytes::Bytes::new()).unwrap())).unwrap().status.as_u16()
    };
    assert_eq!(ask("/", None), 200, "the pages are for everyone");
    assert_eq!(ask("/clusters/prod/api/v1/pods", Some(&good)), 200);
    let forwarded = cluster.api.requests();
    let request = forwarded.iter().find(|request| request.path() == "/api/v1/pods").unwrap();
    assert_eq!(request.header("impersonate-user"), Some("keycloak:ann"));
    assert_eq!(request.header_values("impersonate-group"), ["keycloak:ops"]);
    assert_eq!(request.header("authorization"), None);
    let before = dashboard.requests().len();
    for token in [None, Some(other.as_str()), Some("opaque")] {
        assert_eq!(ask("/clusters/prod/api/v1/pods", token), 401, "{token:?}");
    }
    assert_eq!(dashboard.requests().len(), before, "a rejected request reached the dashboard");
}

/// Without a token of the user's, the dashboard's own kubeconfig opens nothing.
#[test]
fn kubeconfig_of_the_dashboard_has_no_credential() {
    let config = fence("docs/recipes/dashboard.md", "The dashboard's kubeconfig", "yaml");
    let context = context().file("config", &config).file("navicert-ca.crt", &Ca::new("root").pem());
    let outcome = context.run("navicert kubeconfig check --kubeconfig config -o json");
    let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert_eq!(outcome.code(), Some(0), "{report}");
    assert_eq!(report["contexts"][0]["credentials"], json!([]), "{report}");
}
