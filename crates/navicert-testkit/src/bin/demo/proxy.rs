//! Demonstrates `navicert serve proxy`: from a token to `Impersonate-User`, then a change while it runs, then a revoked token.

use std::path::Path;

use navicert_testkit::program::Running;
use navicert_testkit::{ApiServer, Ca, HttpClient, Issuer, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::json;

use super::{Demo, write};

/// An issuer, an API server, and the proxy between them; what the API server is told is shown.
pub(super) fn tell(demo: &Demo) -> Result<(), String> {
    let play = ProxyDemo::set(demo)?;
    demo.scene(
        "A proxy before an API server that knows nothing of your issuer: a token becomes Impersonate-User.",
    );
    println!("$ navicert serve proxy --authentication-config auth.yaml --navicert-config navicert.yaml …");
    let proxy = play.serve(demo)?;
    let told = wait::blocking(proxy.wait_for_output("listening on "));
    let address = told
        .split([' ', ','])
        .find(|word| word.contains("127.0.0.1:"))
        .ok_or("no address")?
        .trim()
        .to_owned();
    let token = play.token();
    play.until(&address, &token, 200, "sso:ann")?;

    demo.scene("The configuration changes while it runs: names get another prefix.");
    play.configure(demo.folder.path(), "corp:")?;
    play.until(&address, &token, 200, "corp:ann")?;

    demo.scene("The token is revoked: refused from now on, although it was good a moment ago.");
    play.revoke(demo.folder.path(), &["4f2a"])?;
    play.until(&address, &token, 401, "")?;
    proxy.signal("TERM");
    match wait::blocking(proxy.wait()).code() {
        Some(0) => Ok(()),
        code => Err(format!("the proxy ended with {code:?}")),
    }
}

struct ProxyDemo {
    ca: Ca,
    issuer: Issuer,
    api: ApiServer,
}

impl ProxyDemo {
    fn set(demo: &Demo) -> Result<Self, String> {
        let ca = Ca::new("proxy demo");
        let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
        let folder = demo.folder.path();
        ca.server().issue().write_to(folder, "front");
        let own = ca.client("navicert-proxy").issue().write_to(folder, "front-own");
        write(&folder.join("front-ca.crt"), &ca.pem())?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": api.url(), "certificate-authority": "front-ca.crt"}}],
            "users": [{"name": "u", "user": {"client-certificate": own.certificate, "client-key": own.key}}],
        });
        write(&folder.join("front.kubeconfig"), &kubeconfig.to_string())?;
        let play = ProxyDemo { ca, issuer, api };
        play.configure(folder, "sso:")?;
        play.revoke(folder, &[])?;
        let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
        let own = "revocationList: revoked.yaml\nservers: {proxy: {selfCheck: off}}\n";
        write(&folder.join("navicert.yaml"), &format!("{head}{own}"))?;
        Ok(play)
    }

    fn configure(&self, folder: &Path, prefix: &str) -> Result<(), String> {
        let issuer = json!({
            "url": self.issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": self.ca.pem(),
        });
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{"issuer": issuer, "claimMappings": {"username": {"claim": "sub", "prefix": prefix}}}],
        });
        replace(folder, "auth.yaml", &config.to_string())
    }

    fn revoke(&self, folder: &Path, names: &[&str]) -> Result<(), String> {
        let issuer = self.issuer.issuer_url();
        let tokens: Vec<_> = names.iter().map(|jti| json!({"issuer": issuer, "jti": jti})).collect();
        let list = json!({"apiVersion": "navicert/v1alpha1", "kind": "RevocationList", "tokens": tokens});
        replace(folder, "revoked.yaml", &list.to_string())
    }

    fn serve(&self, demo: &Demo) -> Result<Running, String> {
        Program::new(&demo.navicert)
            .arguments(["serve", "proxy", "--authentication-config", "auth.yaml"])
            .arguments(["--navicert-config", "navicert.yaml", "--kubeconfig", "front.kubeconfig"])
            .arguments(["--tls-cert-file", "front.crt", "--tls-private-key-file", "front.key"])
            .arguments(["--listen", "127.0.0.1:0", "--log-level", "error"])
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", demo.folder.path())
            .directory(demo.folder.path())
            .start_running()
            .map_err(|error| format!("the proxy does not start: {error}"))
    }

    /// What a login would have given: a token of the issuer.
    fn token(&self) -> String {
        let mut claims = self.issuer.claims("ann", "kubernetes", SystemClock.now());
        if let Some(claims) = claims.as_object_mut() {
            claims.insert("jti".to_owned(), json!("4f2a"));
        }
        self.issuer.token(&claims)
    }

    /// Asks until the answer is this one, and shows what the API server was told.
    fn until(&self, address: &str, token: &str, code: u16, user: &str) -> Result<(), String> {
        println!("$ curl -H 'Authorization: Bearer eyJ…' https://{address}/api/v1/pods");
        let ask = || {
            let request = http::Request::get(format!("https://{address}/api/v1/pods"))
                .header("authorization", format!("Bearer {token}"))
                .body(bytes::Bytes::new())
                .map_err(|error| error.to_string())?;
            let client = HttpClient::trusting(&self.ca);
            let sent = wait::blocking(client.send(request));
            sent.map(|reply| reply.status.as_u16()).map_err(|error| error.to_string())
        };
        for _ in 0..5_000 {
            let seen = ask()?;
            let told = self.api.requests().pop();
            let told =
                told.as_ref().and_then(|request| request.header("impersonate-user")).unwrap_or_default();
            if seen == code && (code != 200 || told == user) {
                match code {
                    200 => println!("200  (the API server sees  Impersonate-User: {told})\n"),
                    code => println!("{code}  (the API server sees nothing)\n"),
                }
                return Ok(());
            }
        }
        Err(format!("{code} does not come"))
    }
}

fn replace(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    write(&folder.join("new"), text)?;
    std::fs::rename(folder.join("new"), folder.join(name))
        .map_err(|error| format!("cannot replace {name}: {error}"))
}
