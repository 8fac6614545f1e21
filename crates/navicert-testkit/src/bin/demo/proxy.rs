//! Demonstrates `navicert serve proxy`: from a token to `Impersonate-User`, then a change while it runs, then a revoked token.

use std::path::Path;

use navicert_testkit::cli::program::Running;
use navicert_testkit::{ApiServer, Ca, HttpClient, Issuer, Kubeconfig, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::json;

use super::{Demo, DemoError, write};

/// Runs an issuer, an API server and the proxy, and shows the user that the API server receives.
pub(super) fn run(demo: &Demo) -> Result<(), DemoError> {
    let proxy_demo = ProxyDemo::prepare(demo)?;
    demo.scene(
        "A proxy before an API server that knows nothing of your issuer: a token becomes Impersonate-User.",
    )?;
    show!("$ navicert serve proxy --authentication-config auth.yaml --navicert-config navicert.yaml …")?;
    let proxy = proxy_demo.serve(demo)?;
    let output = wait::blocking(proxy.wait_for_output("listening on "));
    let address = output
        .split([' ', ','])
        .find(|word| word.contains("127.0.0.1:"))
        .ok_or("no address")?
        .trim()
        .to_owned();
    let token = proxy_demo.token();
    proxy_demo.request_until(&address, &token, 200, "sso:ann")?;

    demo.scene("The configuration changes while it runs: names get another prefix.")?;
    proxy_demo.configure(demo.dir.path(), "corp:")?;
    proxy_demo.request_until(&address, &token, 200, "corp:ann")?;

    demo.scene("The token is revoked: refused from now on, although it was good a moment ago.")?;
    proxy_demo.revoke(demo.dir.path(), &["4f2a"])?;
    proxy_demo.request_until(&address, &token, 401, "")?;
    proxy.signal("TERM");
    match wait::blocking(proxy.wait()).code() {
        Some(0) => Ok(()),
        code => Err(format!("the proxy exited with {code:?}").into()),
    }
}

struct ProxyDemo {
    ca: Ca,
    issuer: Issuer,
    api: ApiServer,
}

impl ProxyDemo {
    fn prepare(demo: &Demo) -> Result<Self, String> {
        let ca = Ca::new("proxy demo");
        let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
        let dir = demo.dir.path();
        ca.server().issue().write_to(dir, "front");
        let own = ca.client("navicert-proxy").issue().write_to(dir, "front-own");
        write(&dir.join("front-ca.crt"), &ca.pem())?;
        let kubeconfig =
            Kubeconfig::new(api.url()).ca_file("front-ca.crt").certificate(own.certificate, own.key);
        write(&dir.join("front.kubeconfig"), &kubeconfig.to_string())?;
        let proxy_demo = ProxyDemo { ca, issuer, api };
        proxy_demo.configure(dir, "sso:")?;
        proxy_demo.revoke(dir, &[])?;
        let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
        let own = "revocationList: revoked.yaml\nservers: {proxy: {selfCheck: off}}\n";
        write(&dir.join("navicert.yaml"), &format!("{head}{own}"))?;
        Ok(proxy_demo)
    }

    fn configure(&self, dir: &Path, prefix: &str) -> Result<(), String> {
        let issuer = json!({
            "url": self.issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": self.ca.pem(),
        });
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{"issuer": issuer, "claimMappings": {"username": {"claim": "sub", "prefix": prefix}}}],
        });
        replace(dir, "auth.yaml", &config.to_string())
    }

    fn revoke(&self, dir: &Path, names: &[&str]) -> Result<(), String> {
        let issuer = self.issuer.issuer_url();
        let tokens: Vec<_> = names.iter().map(|jti| json!({"issuer": issuer, "jti": jti})).collect();
        let list = json!({"apiVersion": "navicert/v1alpha1", "kind": "RevocationList", "tokens": tokens});
        replace(dir, "revoked.yaml", &list.to_string())
    }

    fn serve(&self, demo: &Demo) -> Result<Running, String> {
        Program::new(&demo.navicert)
            .arguments(["serve", "proxy", "--authentication-config", "auth.yaml"])
            .arguments(["--navicert-config", "navicert.yaml", "--kubeconfig", "front.kubeconfig"])
            .arguments(["--tls-cert-file", "front.crt", "--tls-private-key-file", "front.key"])
            .arguments(["--listen", "127.0.0.1:0", "--log-level", "error"])
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", demo.dir.path())
            .directory(demo.dir.path())
            .start_running()
            .map_err(|error| format!("failed to start the proxy: {error}"))
    }

    /// A token of the issuer, as a login returns it.
    fn token(&self) -> String {
        let mut claims = self.issuer.claims("ann", "kubernetes", SystemClock.now());
        if let Some(claims) = claims.as_object_mut() {
            claims.insert("jti".to_owned(), json!("4f2a"));
        }
        self.issuer.token(&claims)
    }

    /// Repeats the request until the response has this status and the API server received this user, and shows both.
    fn request_until(&self, address: &str, token: &str, code: u16, user: &str) -> Result<(), DemoError> {
        show!("$ curl -H 'Authorization: Bearer eyJ…' https://{address}/api/v1/pods")?;
        let send = || -> Result<u16, String> {
            let request = http::Request::get(format!("https://{address}/api/v1/pods"))
                .header("authorization", format!("Bearer {token}"))
                .body(bytes::Bytes::new())
                .map_err(|error| error.to_string())?;
            let client = HttpClient::trusting(&self.ca);
            let sent = wait::blocking(client.send(request));
            sent.map(|reply| reply.status.as_u16()).map_err(|error| error.to_string())
        };
        for _ in 0..5_000 {
            let status = send()?;
            let last = self.api.requests().pop();
            let received =
                last.as_ref().and_then(|request| request.header("impersonate-user")).unwrap_or_default();
            if status == code && (code != 200 || received == user) {
                match code {
                    200 => show!("200  (the API server sees  Impersonate-User: {received})\n")?,
                    code => show!("{code}  (the API server sees nothing)\n")?,
                }
                return Ok(());
            }
        }
        Err(format!("no response with status {code}").into())
    }
}

fn replace(dir: &Path, name: &str, text: &str) -> Result<(), String> {
    write(&dir.join("new"), text)?;
    std::fs::rename(dir.join("new"), dir.join(name))
        .map_err(|error| format!("failed to replace {name}: {error}"))
}
