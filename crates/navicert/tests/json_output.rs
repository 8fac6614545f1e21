//! What the verbs print with `-o json` matches the schemas in docs/schemas/output, after success and after failure.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;

use navicert_testkit::TestContext;
use navicert_testkit::cli::output_schema;
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use serde_json::json;

/// Schemas that need a server, a token or a daemon, or have vectors: the tests that check them.
const CHECKED_ELSEWHERE: [(&str, &str); 18] = [
    ("authn-check-jsonl", "vectors.rs"),
    ("authn-eval-jsonl", "vectors.rs"),
    ("cel-eval-jsonl", "vectors.rs"),
    ("exec-plugin-decode-jsonl", "exec_plugin.rs"),
    ("exec-plugin-info-jsonl", "exec_plugin.rs"),
    ("gateway", "run/together.rs"),
    ("image-check-jsonl", "image_vectors.rs"),
    ("image-invalidate", "image_serve.rs"),
    ("image-keyring-jsonl", "image_vectors.rs"),
    ("image-match-jsonl", "image_vectors.rs"),
    ("image-response-jsonl", "image_vectors.rs"),
    ("kubeconfig-view-jsonl", "vectors.rs"),
    ("login", "login.rs"),
    ("login-setup", "login.rs"),
    ("request-info-jsonl", "vectors.rs"),
    ("serve", "serve/main.rs"),
    ("tls-verify-jsonl", "vectors.rs"),
    ("whoami", "transcripts/doctor/whoami.md"),
];

/// Checked by the tests in `signer.rs`, where SoftHSM is installed.
const NEEDS_A_TOKEN: [&str; 4] = ["signer-check", "signer-list", "signer-request", "signer-setup"];

const NOW: i64 = 1_800_000_000;

fn context() -> TestContext {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let claims =
        json!({"iss": "https://i.example", "aud": "a", "sub": "ann", "groups": ["g"], "exp": NOW + 300});
    let config = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n\
        - issuer: {url: 'https://i.example', audiences: [a]}\n  claimMappings:\n    username: {claim: sub, prefix: 'o:'}\n\
        \x20   groups: {expression: claims.groups}\n  claimValidationRules:\n  - {expression: 'claims.sub != \"bob\"', message: denied}\n";
    let suite = "apiVersion: navicert/v1alpha1\nkind: AuthenticationTest\nconfiguration: authn.yaml\ncases:\n\
        - {name: ann, claims: {sub: ann, groups: []}, expect: {user: {username: 'o:ann'}}}\n";
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: dev\n\
        contexts: [{name: dev, context: {cluster: c, user: u}}, {name: bad, context: {cluster: x, user: u}}]\n\
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t, extra: 1}}]\n";
    let response = r#"{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{"r.example":{"username":"u","password":"p"}}}"#;
    let providers = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n\
        - {name: static, matchImages: [r.example], defaultCacheDuration: 10m, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n\
        - {name: broken, matchImages: [r.example], defaultCacheDuration: 10m, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n";
    let context = TestContext::new()
        .program("navicert", env!("CARGO_BIN_EXE_navicert"))
        .file("authn.yaml", config)
        .file("invalid.yaml", &config.replace("audiences", "audience"))
        .file("rejected.yaml", &config.replace("url: 'https:", "url: 'http:"))
        .file("suite.yaml", suite)
        .file("failing.yaml", &suite.replace("o:ann", "o:bob"))
        .file("keys.json", &json!({"keys": [key.jwk()]}).to_string())
        .file("good.jwt", &key.token(&claims))
        .file(
            "expired.jwt",
            &key.token(&json!({"iss": "https://i.example", "aud": "a", "sub": "ann", "exp": 1})),
        )
        .file("other.jwt", &key.token(&json!({"iss": "https://other", "sub": "ann"})))
        .file("config", kubeconfig)
        .file("claims.json", &claims.to_string())
        .file("providers.yaml", providers)
        .file("lints.yaml", &providers.replace("10m", "-1m"))
        .file("docker.json", r#"{"auths":{"r.example":{"auth":"dTpw"}}}"#)
        .file("node/config.json", r#"{"auths":{"r.example":{"auth":"dTpw"}}}"#)
        .file("response.json", response)
        .file("bin/static", &format!("#!/bin/sh\ncat >/dev/null\necho '{response}'\n"))
        .file("bin/broken", "#!/bin/sh\necho sad >&2\nexit 3\n");
    for program in ["bin/static", "bin/broken"] {
        make_executable(&context.directory().join(program));
    }
    context
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const TOKEN: &str = "--config authn.yaml --jwks keys.json --now 1800000000 --token-file";
const PROVIDERS: &str = "--config providers.yaml --bin-dir bin";

/// Command lines with their exit codes and schemas.
fn lines() -> Vec<(String, i32, &'static str)> {
    let line = |line: &str, code, schema| (line.to_owned(), code, schema);
    let mut lines = vec![
        line("authn check authn.yaml", 0, "authn-check"),
        line("authn check invalid.yaml", 1, "authn-check"),
        line("authn check rejected.yaml", 1, "authn-check"),
        line("authn check missing.yaml", 3, "error"),
        line("authn diff --from 1.37 --to 1.38 authn.yaml", 1, "authn-diff"),
        line("authn diff --from 1.34 --to 1.35 authn.yaml", 0, "authn-diff"),
        line("authn diff authn.yaml invalid.yaml", 1, "authn-diff"),
        line("authn diff authn.yaml rejected.yaml --suite suite.yaml", 1, "authn-diff"),
        line("authn diff authn.yaml missing.yaml", 3, "error"),
        line("authn migrate -- --oidc-issuer-url=https://i --oidc-client-id=c", 0, "authn-migrate"),
        line("authn migrate -- --oidc-client-id=c", 3, "error"),
        line("authn test suite.yaml", 0, "authn-test"),
        line("authn test failing.yaml", 1, "authn-test"),
        line("authn test missing.yaml", 3, "error"),
        line("cel check claims.sub", 0, "cel-check"),
        line("cel check claims.", 1, "cel-check"),
        line("cel eval --claims claims.json --trace claims.sub+claims.aud", 0, "cel-eval"),
        line("cel eval --claims claims.json claims", 0, "cel-eval"),
        line("cel eval claims.missing", 1, "cel-eval"),
        line("cel eval claims.", 1, "cel-eval"),
        line("cel eval --claims missing.json claims", 3, "error"),
        line("doctor --kubeconfig config", 4, "doctor"),
        line("doctor --kubeconfig missing", 3, "doctor"),
        line("exec-plugin check bin/broken", 1, "exec-plugin-check"),
        line("exec-plugin keep --clear", 0, "exec-plugin-keep"),
        line(
            "exec-plugin pin --kubeconfig config --kuberc pinned.yaml --yes /bin/true",
            0,
            "exec-plugin-pin",
        ),
        line("help webhook", 0, "help"),
        line("help topics", 0, "help-topics"),
        line("image check --config providers.yaml --bin-dir bin", 0, "image-check"),
        line("image check --config lints.yaml --bin-dir bin", 1, "image-check"),
        line("image check --config missing.yaml", 3, "error"),
        line("image match r.example r.example/app", 0, "image-match"),
        line("image match r.example other/app", 1, "image-match"),
        line("image match r.example R.example/App", 2, "error"),
        line("image keyring docker.json r.example/app", 0, "image-keyring"),
        line("image keyring --show-secrets docker.json r.example/app", 0, "image-keyring"),
        line("image keyring missing.json r.example/app", 3, "error"),
        line("image response response.json", 0, "image-response"),
        line("image response claims.json", 1, "image-response"),
        line("image plugin-check --image r.example/app -- bin/static", 1, "image-plugin-check"),
        line("kubeconfig check --kubeconfig config", 0, "kubeconfig-check"),
        line("kubeconfig check --kubeconfig config --all-contexts", 3, "kubeconfig-check"),
        line("kubeconfig check --kubeconfig missing", 3, "error"),
        line("kubeconfig view --kubeconfig config", 0, "kubeconfig-view"),
        line("kubeconfig view --kubeconfig config --minify --context nope", 3, "error"),
        line("login --oidc-client-id=c", 2, "error"),
        line("login clean --token-cache-dir=sessions", 0, "login-clean"),
        line(
            "logout --oidc-issuer-url=https://i.example --oidc-client-id=c --token-cache-dir=sessions",
            0,
            "logout",
        ),
        line("status --token-cache-dir=sessions", 1, "status"),
        line("status --no-such", 2, "error"),
        line("serve --check --authentication-config authn.yaml", 0, "serve-check"),
        line(
            "serve webhook --check --authentication-config authn.yaml --plain-http --allow-any-caller",
            0,
            "serve-check",
        ),
        line("serve --check --authentication-config invalid.yaml", 3, "error"),
        line("signer list --module /etc/hostname", 3, "error"),
        line("version", 0, "version"),
        line("version --nonsense", 2, "error"),
        line("whoami --kubeconfig config", 4, "error"),
    ];
    for (verb, file, code) in [("eval", "good.jwt", 0), ("eval", "expired.jwt", 1), ("eval", "other.jwt", 1)]
    {
        lines.push((format!("authn {verb} {TOKEN} {file}"), code, "authn-eval"));
    }
    for (flags, file, code) in
        [("", "good.jwt", 0), (" --show-values", "expired.jwt", 1), ("", "other.jwt", 1)]
    {
        lines.push((format!("authn explain{flags} {TOKEN} {file}"), code, "authn-explain"));
    }
    for (verb, arguments, code, schema) in [
        ("get", "r.example/app", 0, "image-get"),
        ("get", "other/app", 1, "image-get"),
        ("get", "R.example/App", 2, "error"),
        ("explain", "r.example/app", 0, "image-explain"),
        ("explain", "--kubelet-root-dir node r.example/app", 0, "image-explain"),
        ("explain", "--dry-run other/app", 1, "image-explain"),
        ("auth-file", "--file auth.json r.example/app", 0, "image-auth-file"),
    ] {
        lines.push((format!("image {verb} {PROVIDERS} {arguments}"), code, schema));
    }
    lines
}

#[test]
fn output_of_every_verb_matches_its_schema() {
    let context = context();
    let mut checked = BTreeSet::new();
    for (line, code, schema) in lines() {
        let outcome = context.run(&format!("navicert -o json {line}"));
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.code(), Some(code), "{line}\n{text}{stderr}");
        let arguments: Vec<String> =
            ["-o", "json"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
        let found = output_schema::check(&arguments, &outcome.stdout)
            .unwrap_or_else(|problem| panic!("{line}: {problem}\n{text}"));
        assert_eq!(found.as_deref(), Some(schema), "{line}\n{text}");
        checked.insert(schema.to_owned());
    }
    checked.extend(CHECKED_ELSEWHERE.iter().map(|(schema, _)| (*schema).to_owned()));
    checked.extend(NEEDS_A_TOKEN.map(str::to_owned));
    let all: BTreeSet<String> = std::fs::read_dir(output_schema::directory())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(all, checked, "every schema is compared with real output");
}

#[test]
fn tests_that_check_the_other_schemas_name_them() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (schema, test) in CHECKED_ELSEWHERE {
        let text = std::fs::read_to_string(tests.join(test)).unwrap();
        let checks =
            text.contains("output_schema::check") || text.contains(&format!("$ navicert {schema} -o json"));
        assert!(checks, "{test} does not check {schema}");
    }
}
