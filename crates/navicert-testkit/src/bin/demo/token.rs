//! Demonstrates `navicert authn explain`: a token is rejected, `explain` says why, the configuration is fixed while a server runs, the same
//! login succeeds, and then its token is revoked.

use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_testkit::program::Running;
use navicert_testkit::{Ca, HttpClient, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::{Demo, write};

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

const SIDE_CAR: &str = "\
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
pub(super) fn tell(demo: &Demo) -> Result<(), String> {
    let key = SigningKey::generate(Algorithm::Es256, "k1");
    let now = SystemClock.now().as_second();
    let token = key.token(&json!({
        "iss": "https://login.example.com", "aud": "kubernetes", "iat": now, "exp": now + 300, "jti": "4f2a",
        "sub": "ann", "groups": ["dev"],
    }));
    let keys = json!({"keys": [key.jwk()]}).to_string();
    let ca = Ca::new("tokens");
    ca.server().issue().write_to(demo.folder.path(), "webhook");
    for (name, text) in [
        ("authn.yaml", CONFIGURATION),
        ("navicert.yaml", SIDE_CAR),
        ("revoked.yaml", NOTHING_REVOKED),
        ("token.jwt", token.as_str()),
        ("keys.json", keys.as_str()),
        ("api-server-ca.crt", &ca.pem()),
    ] {
        write(&demo.folder.path().join(name), text)?;
    }
    // One thread for the scene, so that it can wait for the server.
    wait::blocking(scene(demo, &ca, &token))
}

async fn scene(demo: &Demo, ca: &Ca, token: &str) -> Result<(), String> {
    let server = Server::start(demo, ca, token).await?;
    demo.scene("A token is refused, and the API server says no more than `Unauthorized`. Why?");
    println!("$ navicert {}\n", Server::COMMAND);
    server.says("not authenticated").await?;
    let question = ["--config", "authn.yaml", "--jwks", "keys.json", "--token-file", "token.jwt"];
    let words: Vec<&str> = ["authn", "explain"].into_iter().chain(question).collect();
    demo.run(&words, 1)?;

    demo.scene("Fixed while the server runs: the same token is accepted.");
    println!("$ sed -i 's/Kubernetes]/kubernetes]/' authn.yaml");
    demo.replace("authn.yaml", &CONFIGURATION.replace("[Kubernetes]", "[kubernetes]"))?;
    server.says("authenticated as oidc:ann, in oidc:dev").await?;

    demo.scene("And now it is revoked, which kube-apiserver has no way to do.");
    demo.replace("revoked.yaml", REVOKED)?;
    demo.show("cat revoked.yaml", &Program::new("cat").arguments(["revoked.yaml"]), 0)?;
    server.says("not authenticated").await?;
    server.end().await
}

/// `navicert serve webhook`, and an API server that asks it about one token.
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
            .variable("HOME", demo.folder.path())
            .directory(demo.folder.path())
            .start_running()
            .map_err(|error| format!("cannot start the webhook: {error}"))?;
        let told = program.wait_for_output("listening on ").await;
        let address = told.split_whitespace().skip_while(|word| *word != "on").nth(1).unwrap_or_default();
        let client = HttpClient::with_identity(ca, &ca.client("kube-apiserver").issue());
        Ok(Server { url: format!("https://{address}/authenticate"), program, client, token })
    }

    /// Asks until the answer begins like this: files are watched, and a change takes a moment.
    async fn says(&self, expected: &str) -> Result<(), String> {
        let asked = async {
            loop {
                let answer = self.ask().await?;
                if answer.starts_with(expected) {
                    return Ok::<_, String>(answer);
                }
            }
        };
        println!(
            "the API server asks the webhook whose token it is\n{}\n",
            wait::within(expected, asked).await?
        );
        Ok(())
    }

    async fn ask(&self) -> Result<String, String> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": self.token},
        });
        let reply = Box::pin(self.client.post_json(&self.url, &review)).await;
        let reply = reply.map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        let status = answer.get("status").ok_or_else(|| format!("no status in {answer}"))?;
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
            code => Err(format!("the webhook ends with {code:?}")),
        }
    }
}
