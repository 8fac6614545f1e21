//! Demonstrates `navicert authn explain`: a token is rejected, `explain` says why, the configuration is fixed while a server runs, the same
//! login succeeds, and then its token is revoked.

use navicert_testkit::cli::program::Running;
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_testkit::{Ca, HttpClient, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::{Demo, DemoError, write};

const CONFIGURATION: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://login.example.com
    audiences: [Kubernetes]
  claimMappings:
    username: {claim: sub, prefix: \"oidc:\"}
    groups: {claim: groups, prefix: \"oidc:\"}
";

const NAVICERT_CONFIGURATION: &str = "\
apiVersion: navicert/v1alpha1
kind: NavicertConfiguration
revocationList: revoked.yaml
issuers:
- {url: https://login.example.com, jwksFile: keys.json}
";

const NOTHING_REVOKED: &str = "\
apiVersion: navicert/v1alpha1
kind: RevocationList
";

const REVOKED: &str = "\
apiVersion: navicert/v1alpha1
kind: RevocationList
tokens:
- {issuer: https://login.example.com, jti: 4f2a}
";

/// Runs the demonstration.
pub(super) fn run(demo: &Demo) -> Result<(), DemoError> {
    let key = SigningKey::generate(Algorithm::Es256, "k1");
    let now = SystemClock.now().as_second();
    let token = key.token(&json!({
        "iss": "https://login.example.com", "aud": "kubernetes", "iat": now, "exp": now + 300, "jti": "4f2a",
        "sub": "ann", "groups": ["dev"],
    }));
    let keys = json!({"keys": [key.jwk()]}).to_string();
    let ca = Ca::new("tokens");
    ca.server().issue().write_to(demo.dir.path(), "webhook");
    for (name, text) in [
        ("authn.yaml", CONFIGURATION),
        ("navicert.yaml", NAVICERT_CONFIGURATION),
        ("revoked.yaml", NOTHING_REVOKED),
        ("token.jwt", token.as_str()),
        ("keys.json", keys.as_str()),
        ("api-server-ca.crt", &ca.pem()),
    ] {
        write(&demo.dir.path().join(name), text)?;
    }
    wait::blocking(scene(demo, &ca, &token))
}

async fn scene(demo: &Demo, ca: &Ca, token: &str) -> Result<(), DemoError> {
    let server = Server::start(demo, ca, token).await?;
    demo.scene("A token is refused, and the API server says no more than `Unauthorized`. Why?")?;
    show!("$ navicert {}\n", Server::COMMAND)?;
    server.review_until("not authenticated").await?;
    let arguments = ["--config", "authn.yaml", "--jwks", "keys.json", "--token-file", "token.jwt"];
    let words: Vec<&str> = ["authn", "explain"].into_iter().chain(arguments).collect();
    demo.run(&words, 1)?;

    demo.scene("Fixed while the server runs: the same token is accepted.")?;
    show!("$ sed -i 's/Kubernetes]/kubernetes]/' authn.yaml")?;
    demo.replace("authn.yaml", &CONFIGURATION.replace("[Kubernetes]", "[kubernetes]"))?;
    server.review_until("authenticated as oidc:ann, in oidc:dev").await?;

    demo.scene("And now it is revoked, which kube-apiserver has no way to do.")?;
    demo.replace("revoked.yaml", REVOKED)?;
    demo.show("cat revoked.yaml", &Program::new("cat").arguments(["revoked.yaml"]), 0)?;
    server.review_until("not authenticated").await?;
    Ok(server.end().await?)
}

/// `navicert serve webhook`, and an API server's client that reviews one token.
struct Server<'s> {
    program: Running,
    client: HttpClient,
    url: String,
    token: &'s str,
}

impl<'s> Server<'s> {
    const COMMAND: &'static str = "serve webhook --authentication-config authn.yaml \
        --navicert-config navicert.yaml --listen 127.0.0.1:0 --tls-cert-file webhook.crt \
        --tls-private-key-file webhook.key --client-ca-file api-server-ca.crt";

    async fn start(demo: &Demo, ca: &Ca, token: &'s str) -> Result<Self, String> {
        let program = Program::new(&demo.navicert)
            .arguments(Server::COMMAND.split_whitespace())
            .own_environment()
            .variable("HOME", demo.dir.path())
            .directory(demo.dir.path())
            .start_running()
            .map_err(|error| format!("failed to start the webhook: {error}"))?;
        let output = program.wait_for_output("listening on ").await;
        let address = output.split_whitespace().skip_while(|word| *word != "on").nth(1).unwrap_or_default();
        let client = HttpClient::with_identity(ca, &ca.client("kube-apiserver").issue());
        Ok(Server { url: format!("https://{address}/authenticate"), program, client, token })
    }

    /// Repeats the review until its result begins with `expected`: a changed file is reloaded with a delay.
    async fn review_until(&self, expected: &str) -> Result<(), DemoError> {
        let reviewed = async {
            loop {
                let result = self.review().await?;
                if result.starts_with(expected) {
                    return Ok::<_, String>(result);
                }
            }
        };
        show!(
            "the API server asks the webhook whose token it is\n{}\n",
            wait::within(expected, reviewed).await?
        )
    }

    /// Sends one TokenReview and describes its result.
    async fn review(&self) -> Result<String, String> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": self.token},
        });
        let reply = Box::pin(self.client.post_json(&self.url, &review)).await;
        let reply = reply.map_err(|error| error.to_string())?;
        let response: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        let status = response.get("status").ok_or_else(|| format!("missing `status` in {response}"))?;
        let text = |path: &str| status.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if status.get("authenticated") != Some(&Value::Bool(true)) {
            return Ok("not authenticated".to_owned());
        }
        Ok(format!("authenticated as {}, in {}", text("/user/username"), text("/user/groups/0")))
    }

    async fn end(self) -> Result<(), String> {
        self.program.signal("TERM");
        match self.program.wait().await.code() {
            Some(0) => Ok(()),
            code => Err(format!("the webhook exited with {code:?}")),
        }
    }
}
