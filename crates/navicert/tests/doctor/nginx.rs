//! nginx as load balancer in front of the API server: it ends TLS, loses credentials, or has no API server behind it.

use std::fmt::Write as _;
use std::net::TcpListener;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_testkit::cli::tools;
use navicert_testkit::{Answer, ApiServer, Ca, HttpServer, Program, TestContext, wait};
use serde_json::json;

use super::setup::{KNOWN, OPAQUE, Setup, anonymous_forbidden, check, check_fix, version};

/// An API server without TLS, behind a load balancer. Anonymous requests are allowed as Kubernetes allows them.
fn plain_api_server() -> HttpServer {
    let choose = |request: &navicert_testkit::net::http_server::Request| {
        let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "status": {"userInfo": {"username": "ann", "groups": ["developers"]}}});
        match (request.path(), request.bearer_token()) {
            ("/version", _) => version(),
            (_, None) => anonymous_forbidden(),
            (ApiServer::WHO_AM_I, Some(KNOWN)) => Answer::json(&review).with_status(201),
            ("/api", Some(KNOWN)) => Answer::json(&json!({"kind": "APIVersions", "versions": ["v1"]})),
            _ => Answer::unauthorized(),
        }
    };
    HttpServer::builder().otherwise(choose).start_plain()
}

/// The servers of one nginx, each on its own port.
struct Nginx {
    directory: tempfile::TempDir,
    _running: navicert_testkit::cli::program::Running,
    ports: Vec<u16>,
}

impl Nginx {
    /// Starts nginx with one TLS server per body; `None` if it is not installed.
    fn start(setup: &Setup, bodies: &[String]) -> Option<Self> {
        let nginx = tools::installed("nginx", "nginx")?;
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().display();
        let files = setup.ca.server().issue().write_to(directory.path(), "server");
        std::fs::write(directory.path().join("ca.crt"), setup.ca.pem()).unwrap();
        let listeners: Vec<TcpListener> =
            bodies.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        // Free a moment ago; nginx takes them at once.
        drop(listeners);
        let mut servers = String::new();
        for (port, body) in ports.iter().zip(bodies) {
            let body = body.replace("[DIR]", &dir.to_string());
            let certificate = match body.contains("ssl_certificate ") {
                true => String::new(),
                false => format!(
                    "ssl_certificate {}; ssl_certificate_key {};",
                    files.certificate.display(),
                    files.key.display()
                ),
            };
            writeln!(servers, "server {{ listen 127.0.0.1:{port} ssl; {certificate} {body} }}").unwrap();
        }
        let config = format!(
            "daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  {servers}
}}
"
        );
        std::fs::write(directory.path().join("nginx.conf"), config).unwrap();
        let running = Program::new(nginx)
            .arguments(["-e", "stderr", "-c"])
            .arguments([directory.path().join("nginx.conf")])
            .start_running()
            .unwrap();
        wait::blocking(wait::within("nginx listens", async {
            while tokio::net::TcpStream::connect(("127.0.0.1", *ports.last().unwrap())).await.is_err() {
                tokio::task::yield_now().await;
            }
        }));
        Some(Nginx { directory, _running: running, ports })
    }

    /// The setup's kubeconfig for the server with this number.
    fn context(&self, setup: &Setup, server: usize) -> TestContext {
        setup.at(&format!("https://127.0.0.1:{}", self.ports.get(server).unwrap())).context(34)
    }
}

#[test]
fn load_balancers_in_front_of_the_api_server_are_recognised() {
    let setup = Setup::new();
    let (api, gone) = (plain_api_server(), TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let forward = format!("proxy_pass {};", api.url());
    let bodies = [
        format!("location / {{ {forward} }}"),
        format!("location / {{ proxy_set_header Authorization \"\"; {forward} }}"),
        format!("location / {{ proxy_pass http://{gone}; }}"),
        "location / { root [DIR]/missing; }".to_owned(),
        "location / { return 302 https://login.example/oauth2/start?rd=$request_uri; }".to_owned(),
        "location / { default_type text/html; return 200 '<html>dashboard</html>'; }".to_owned(),
        format!("ssl_client_certificate [DIR]/ca.crt; ssl_verify_client on; location / {{ {forward} }}"),
        "location / { return 503; }".to_owned(),
        "return 444;".to_owned(),
        "location / { auth_basic cluster; auth_basic_user_file [DIR]/users; root [DIR]/missing; }".to_owned(),
    ];
    let Some(nginx) = Nginx::start(&setup, &bodies) else { return };
    std::fs::write(nginx.directory.path().join("users"), "").unwrap();
    let removed = "set the server of cluster `east` to the API server's own address: a load balancer or proxy at `https://127.0.0.1:[PORT]` removes the credential";
    let ends_tls = "set the server of cluster `east` to the API server's own address: a load balancer at `https://127.0.0.1:[PORT]` ends TLS";
    let other =
        "correct the server of cluster `east`: `https://127.0.0.1:[PORT]` is not a Kubernetes API server";
    let down = "check the API server behind `https://127.0.0.1:[PORT]`: it is down or not ready";
    check("nginx-forwards", "no problems found", nginx.context(&setup, 0));
    check_fix("nginx-removes-token", removed, nginx.context(&setup, 1));
    check_fix("nginx-without-api-server", down, nginx.context(&setup, 2));
    check_fix("nginx-404", other, nginx.context(&setup, 3));
    check_fix("nginx-redirects-to-login", other, nginx.context(&setup, 4));
    check_fix("nginx-dashboard", other, nginx.context(&setup, 5));
    let fix = "give user `ann` a client certificate and key for this cluster";
    check_fix("nginx-requires-certificate", fix, nginx.context(&setup, 6));
    check_fix("nginx-503", down, nginx.context(&setup, 7));
    let closes =
        "check the API server at `https://127.0.0.1:[PORT]`: it closes connections without a response";
    check_fix("nginx-closes-connections", closes, nginx.context(&setup, 8));
    let fix = "give user `ann` a token that this cluster accepts";
    check_fix("nginx-requires-password", fix, nginx.context(&setup, 9));
    let plain = format!("http://127.0.0.1:{}", nginx.ports[0]);
    let fix = "set the server of cluster `east` to `https://127.0.0.1:[PORT]`";
    check_fix("nginx-http-to-tls-port", fix, setup.at(&plain).context(34));
    let identity = setup.ca.client("ann").issue();
    let certificate = setup.certificate(&identity);
    check_fix("nginx-loses-certificate", ends_tls, nginx.context(&certificate, 0));
    let stranger = certificate.certificate(&Ca::new("another root").client("ann").issue());
    let fix = "give user `ann` a certificate issued by this cluster's certificate authority";
    check_fix("nginx-rejects-certificate", fix, nginx.context(&stranger, 6));
    let unknown = stranger.user(json!({"token": OPAQUE}));
    let fix = "give user `ann` a token that this cluster accepts";
    check_fix("nginx-forwards-unknown-token", fix, nginx.context(&unknown, 0));
}

#[test]
fn self_signed_server_certificates_are_trusted_only_if_configured() {
    let Some(openssl) = tools::installed("openssl", "openssl") else { return };
    let directory = tempfile::tempdir().unwrap();
    let made = Program::new(openssl)
        .arguments([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "3650",
        ])
        .arguments(["-subj", "/CN=self-signed", "-addext", "subjectAltName=IP:127.0.0.1"])
        .arguments(["-keyout", "self.key", "-out", "self.crt"])
        .directory(directory.path())
        .run()
        .unwrap();
    assert_eq!(made.code(), Some(0));
    let setup = Setup::new();
    let api = plain_api_server();
    let dir = directory.path().display();
    let body = format!(
        "ssl_certificate {dir}/self.crt; ssl_certificate_key {dir}/self.key; location / {{ proxy_pass {}; }}",
        api.url()
    );
    let Some(nginx) = Nginx::start(&setup, &[body]) else { return };
    let fix =
        "replace the certificate authority of cluster `east` with the one that issued the server certificate";
    check_fix("self-signed-and-not-trusted", fix, nginx.context(&setup, 0));
    let url = format!("https://127.0.0.1:{}", nginx.ports[0]);
    let trusted = std::fs::read(directory.path().join("self.crt")).unwrap();
    let cluster = json!({"server": url, "certificate-authority-data": STANDARD.encode(trusted)});
    check("self-signed-and-trusted", "", Setup { cluster, ..setup }.context(34));
}
