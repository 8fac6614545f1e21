//! The scene about a token: it is refused, `explain` says why, the configuration is mended, the same login succeeds, and
//! then its token is revoked.

use navicert_testkit::Program;
use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::{Clock as _, SystemClock};
use serde_json::json;

use super::{Stage, write};

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
";

const NOBODY: &str = "\
apiVersion: navicert/v1alpha1
kind: RevocationList
";

const REVOKED: &str = "\
apiVersion: navicert/v1alpha1
kind: RevocationList
tokens:
- {issuer: https://login.example.com, jti: 4f2a}
";

/// Tells it.
pub(super) fn tell(stage: &Stage) -> Result<(), String> {
    let key = SigningKey::generate(Algorithm::Es256, "k1");
    let now = SystemClock.now().as_second();
    let token = key.token(&json!({
        "iss": "https://login.example.com", "aud": "kubernetes", "iat": now, "exp": now + 300, "jti": "4f2a",
        "sub": "ann", "groups": ["dev"],
    }));
    let keys = json!({"keys": [key.jwk()]}).to_string();
    for (name, text) in [
        ("authn.yaml", CONFIGURATION),
        ("navicert.yaml", SIDE_CAR),
        ("revoked.yaml", NOBODY),
        ("token.jwt", token.as_str()),
        ("keys.json", keys.as_str()),
    ] {
        write(&stage.folder.path().join(name), text)?;
    }

    stage.scene("A token is refused, and the API server says no more than `Unauthorized`. Why?");
    let question = ["--config", "authn.yaml", "--jwks", "keys.json", "--token-file", "token.jwt"];
    let ask = |verb: &str, more: &[&str], expected: i32| {
        let words: Vec<&str> =
            ["authn", verb].into_iter().chain(question).chain(more.iter().copied()).collect();
        stage.run(&words, expected)
    };
    ask("explain", &[], 1)?;

    stage.scene("Mended: the same token is somebody.");
    write(&stage.folder.path().join("authn.yaml"), &CONFIGURATION.replace("[Kubernetes]", "[kubernetes]"))?;
    println!("$ sed -i 's/Kubernetes]/kubernetes]/' authn.yaml");
    ask("eval", &["--navicert-config", "navicert.yaml"], 0)?;

    stage.scene("And now it is revoked, which kube-apiserver has no way to do.");
    write(&stage.folder.path().join("revoked.yaml"), REVOKED)?;
    stage.show("cat revoked.yaml", &Program::new("cat").arguments(["revoked.yaml"]), 0)?;
    ask("eval", &["--navicert-config", "navicert.yaml"], 1)
}
