//! Every kind of expression error, with canaries as claims: no output of the programs shows one, unless `--show-values` asks for it.
// H16, S224, S282
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use navicert_cel::kubernetes::{claims_environment, claims_json};
use navicert_cel::{Arena, Bindings, ClaimError, Claims, EvalErrorKind, InvalidArgument, Operand, ValueRef};
use navicert_testkit::cli::program::{Outcome, Running};
use navicert_testkit::{ApiServer, Ca, Canaries, HttpClient, Issuer, Kubeconfig, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

/// The canaries: a text, a number, and digits that no integer holds.
const TEXT: &str = "canary-5e0b71c94d";
const NUMBER: &str = "7316924508";
const DIGITS: &str = "73169245087316924508731692450873";

/// Names every kind of error. A kind that is not named does not compile; one that is named `reachable` needs a case below.
macro_rules! kinds {
    (
        reachable { $($name:ident: $kind:pat),* $(,)? }
        unreachable { $($other:ident: $never:pat),* $(,)? }
    ) => {
        const REACHABLE: &[&str] = &[$(stringify!($name)),*];

        fn name(kind: &EvalErrorKind) -> &'static str {
            match kind {
                $($kind => stringify!($name),)*
                $($never => stringify!($other),)*
            }
        }
    };
}

kinds! {
    reachable {
        NoSuchOverload: EvalErrorKind::NoSuchOverload { .. },
        NoSuchOperand: EvalErrorKind::NoSuchOperand { .. },
        LiteralKey: EvalErrorKind::NoSuchKey(Operand::Literal(_)),
        ComputedKey: EvalErrorKind::NoSuchKey(Operand::Computed(_)),
        LiteralIndex: EvalErrorKind::IndexOutOfBounds(Operand::Literal(_)),
        ComputedIndex: EvalErrorKind::IndexOutOfBounds(Operand::Computed(_)),
        IndexType: EvalErrorKind::IndexType { .. },
        InvalidIndex: EvalErrorKind::InvalidIndex(_),
        DivisionByZero: EvalErrorKind::DivisionByZero,
        ModulusByZero: EvalErrorKind::ModulusByZero,
        IntOverflow: EvalErrorKind::IntOverflow,
        UintOverflow: EvalErrorKind::UintOverflow,
        TimestampOverflow: EvalErrorKind::TimestampOverflow,
        NoValue: EvalErrorKind::NoValue,
        Conversion: EvalErrorKind::Conversion { .. },
        NotIterable: EvalErrorKind::NotIterable { .. },
        Misuse: EvalErrorKind::Misuse(_),
        Pattern: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Pattern, .. },
        TimeZone: EvalErrorKind::InvalidArgument { argument: InvalidArgument::TimeZone, .. },
        IpAddress: EvalErrorKind::InvalidArgument { argument: InvalidArgument::IpAddress, .. },
        Cidr: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Cidr, .. },
        Url: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Url, .. },
        Version: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Version, .. },
        Quantity: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Quantity, .. },
        Format: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Format, .. },
        Position: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Position, .. },
        Slice: EvalErrorKind::InvalidArgument { argument: InvalidArgument::Slice, .. },
        RangeSize: EvalErrorKind::InvalidArgument { argument: InvalidArgument::RangeSize, .. },
        FlattenLevel: EvalErrorKind::InvalidArgument { argument: InvalidArgument::FlattenLevel, .. },
        OutOfRange: EvalErrorKind::Claim { error: ClaimError::OutOfRange(_), .. },
        Limit: EvalErrorKind::Limit(_),
    }
    // Not in kube-apiserver's environment, only with other settings, or only if the evaluator is broken: the tests of
    // navicert-authn print them.
    unreachable {
        ExtendedLibraries: EvalErrorKind::InvalidArgument {
            argument: InvalidArgument::Base64 | InvalidArgument::ShiftOffset,
            ..
        },
        Distributed: EvalErrorKind::Claim { error: ClaimError::Pending | ClaimError::Unavailable(_), .. },
        TooDeep: EvalErrorKind::Claim { error: ClaimError::TooDeep, .. },
        NoSuchAttribute: EvalErrorKind::NoSuchAttribute(_),
        Internal: EvalErrorKind::Internal(_),
    }
}

/// An expression of type bool for each reachable kind, over claims that are canaries.
const CASES: [&str; 31] = [
    "dyn(claims.list) - dyn('x') == dyn('y')",
    "dyn(claims.text) + dyn(1) == dyn('y')",
    "claims.absent == claims.text",
    "claims[string(claims.text)] == 'y'",
    "dyn(claims.list)[7] == claims.text",
    "dyn(claims.list)[int(claims.number)] == 'y'",
    "int(claims.number) / int(claims.zero) == 1",
    "int(claims.number) % int(claims.zero) == 1",
    "int(claims.number) * 9223372036854775807 > 0",
    "uint(-double(claims.number)) > 0u",
    "timestamp(int(claims.number) * 1000000) > timestamp(0)",
    "claims.?absent.value() == claims.text",
    "int(string(claims.text)) > 0",
    "dyn(claims.text).all(c, c == 'x')",
    "dyn(claims.list)[string(claims.text)] == 'y'",
    "dyn(claims.list)[claims.number + 0.5] == 'y'",
    "claims.number + 0.0 / double(claims.zero) > 1.0",
    "'x'.matches(string(claims.text) + '(')",
    "timestamp(0).getHours(string(claims.text)) > 0",
    "ip(string(claims.text)).family() == 4",
    "cidr(string(claims.text)).prefixLength() == 8",
    "url(string(claims.text)).getHost() == ''",
    "semver(string(claims.text)).major() == 1",
    "quantity(string(claims.text)).isInteger()",
    "('%.' + string(claims.digits) + 'f').format([1.0]) == ''",
    "string(claims.text).substring(int(claims.number)) == ''",
    "dyn(claims.list).slice(0, int(claims.number)) == []",
    "lists.range(int(claims.number)).size() == 1",
    "[dyn(claims.list)].flatten(-int(claims.number)) == []",
    "claims.vast > 1.0",
    "string(claims.long).contains(string(claims.long))",
];

/// Claims for every case, as JSON: a number out of range for a double cannot be written otherwise.
fn case_claims(case: usize) -> String {
    let long = TEXT.repeat(600);
    format!(
        r#""case": "case-{case}", "text": "{TEXT}", "number": {NUMBER}, "digits": "{DIGITS}", "zero": 0,
        "list": ["{TEXT}"], "long": "{long}", "vast": {NUMBER}e999"#
    )
}

/// A rule that fails with the error of its case, and holds for all others.
fn rule(case: usize, expression: &str) -> String {
    format!("claims.case != 'case-{case}' || ({expression})")
}

fn canaries() -> Canaries {
    let mut canaries = Canaries::new();
    for (name, value) in [("text", TEXT), ("number", NUMBER), ("digits", DIGITS)] {
        canaries.adopt(name, value.as_bytes());
    }
    canaries
}

/// The issuer, an API server, and a directory with configuration files and keys.
struct Setup {
    ca: Ca,
    issuer: Issuer,
    api: ApiServer,
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let ca = Ca::new("canaries");
        let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
        let setup = Setup { ca, issuer, api, dir: tempfile::tempdir().unwrap() };
        let rules: Vec<Value> =
            CASES.iter().enumerate().map(|(case, text)| json!({"expression": rule(case, text)})).collect();
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {
                    "url": setup.issuer.issuer_url(), "audiences": ["kubernetes"],
                    "certificateAuthority": setup.ca.pem(),
                },
                "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}},
                "claimValidationRules": rules,
            }],
        });
        setup.write("config.yaml", &config.to_string());
        setup.write(
            "navicert.yaml",
            &json!({
                "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
                "servers": {"webhook": {"exposeErrors": true}, "proxy": {"selfCheck": "off"}},
            })
            .to_string(),
        );
        setup.write("keys.json", &setup.issuer.jwks().to_string());
        setup.ca.server().issue().write_to(setup.dir.path(), "tls");
        setup.write("ca.crt", &setup.ca.pem());
        setup.kubeconfig();
        setup
    }

    fn kubeconfig(&self) {
        let proxy = self.ca.client("navicert-proxy").issue().write_to(self.dir.path(), "proxy");
        let config = Kubeconfig::new(self.api.url()).ca(&self.ca).certificate(proxy.certificate, proxy.key);
        self.write("proxy.kubeconfig", &config.to_string());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The token of a case.
    fn token(&self, case: usize) -> String {
        let claims = self.issuer.claims("ann", "kubernetes", SystemClock.now()).to_string();
        let payload = format!("{}, {}}}", claims.strip_suffix('}').unwrap(), case_claims(case));
        let key = self.issuer.key();
        key.token_of_bytes(key.header().to_string().as_bytes(), payload.as_bytes())
    }

    fn program(&self) -> Program {
        Program::new(NAVICERT)
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.dir.path())
            .directory(self.dir.path())
    }

    fn run(&self, arguments: &[&str], stdin: &str) -> Outcome {
        self.program().arguments(arguments).stdin(stdin).run().unwrap()
    }

    /// Starts a server that logs everything, and waits until it has the issuer's keys.
    async fn serve(&self, server: &str, flags: &[&str]) -> Serving {
        let running = self
            .program()
            .arguments(["serve", server, "-o", "json", "--listen", "127.0.0.1:0"])
            .arguments(["--health-listen", "127.0.0.1:0", "--authentication-config", "config.yaml"])
            .arguments(["--navicert-config", "navicert.yaml", "--log-level", "trace"])
            .arguments(["--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key"])
            .arguments(["--audit-log-path", "audit.log"])
            .arguments(flags)
            .start_running()
            .unwrap();
        let said = running.wait_for_output(&format!("\"server\":\"{server}\"}}\n")).await;
        let line = said.lines().find(|line| line.starts_with("{\"health\"")).unwrap();
        let addresses: Value = serde_json::from_str(line).unwrap();
        let address = |name: &str| addresses.get(name).and_then(Value::as_str).unwrap().to_owned();
        let serving = Serving { listen: address("listen"), health: address("health"), running };
        let ready = async {
            while serving.inspect("/readyz?verbose").await.contains("[-]issuers") {
                tokio::task::yield_now().await;
            }
        };
        wait::within("the issuer's keys", Box::pin(ready)).await;
        serving
    }
}

struct Serving {
    running: Running,
    listen: String,
    health: String,
}

impl Serving {
    async fn inspect(&self, path: &str) -> String {
        let any = HttpClient::trusting(&Ca::new("unused"));
        Box::pin(any.get(&format!("http://{}{path}", self.health))).await.unwrap().text().to_owned()
    }

    /// Stops the server and searches everything that it wrote.
    async fn end(self, setup: &Setup, canaries: &Canaries) {
        let metrics = self.inspect("/metrics").await;
        assert!(metrics.contains("claim_rule"), "{metrics}");
        canaries.assert_absent("metrics", metrics.as_bytes());
        canaries.assert_absent("readiness", self.inspect("/readyz?verbose").await.as_bytes());
        self.running.signal("TERM");
        let outcome = self.running.wait().await;
        assert!(outcome.stdout.len() > 1_000, "something is logged at this level");
        canaries.assert_absent("the log", &outcome.stdout);
        canaries.assert_absent("the log", &outcome.stderr);
        let audit = fs::read_to_string(setup.path("audit.log")).unwrap();
        assert!(audit.lines().count() >= CASES.len(), "{audit}");
        canaries.assert_absent("the audit log", audit.as_bytes());
        fs::remove_file(setup.path("audit.log")).unwrap();
    }
}

#[test]
fn cases_cover_every_reachable_kind() {
    let mut seen = BTreeSet::new();
    for (case, expression) in CASES.iter().enumerate() {
        let program = claims_environment()
            .compile_rule(&rule(case, expression))
            .unwrap_or_else(|error| panic!("{error}"));
        let claims = claims_json::decode(&format!("{{{}}}", case_claims(case))).unwrap();
        let arena = Arena::new();
        let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&claims)));
        let error = program.evaluate(&arena, &bindings).expect_err(expression);
        let kind = name(&error.error.kind);
        assert!(REACHABLE.contains(&kind), "{expression}: {error}");
        seen.insert(kind);
    }
    let missing: Vec<_> = REACHABLE.iter().filter(|kind| !seen.contains(*kind)).collect();
    assert!(missing.is_empty(), "no case fails with {missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_exposes_errors_shows_no_claim() {
    let (setup, canaries) = (Setup::new(), canaries());
    let client = HttpClient::trusting(&setup.ca);
    for format in ["text", "json"] {
        let serving = setup.serve("webhook", &["--allow-any-caller", "--log-format", format]).await;
        for case in 0..CASES.len() {
            let token = setup.token(case);
            let review = json!({
                "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token},
            });
            let url = format!("https://{}/authenticate", serving.listen);
            let reply = Box::pin(client.post_json(&url, &review)).await.unwrap();
            let path = format!("jwt[0].claimValidationRules[{case}].expression: ");
            let error =
                reply.json().pointer("/status/error").and_then(Value::as_str).unwrap_or_default().to_owned();
            assert!(error.starts_with(&path), "case {case}: {}", reply.text());
            canaries.assert_absent(&format!("the review of case {case}"), &reply.body);
            let request = http::Request::get(format!("https://{}/auth", serving.listen))
                .header("authorization", format!("Bearer {token}"))
                .body(bytes::Bytes::new())
                .unwrap();
            let reply = Box::pin(client.send(request)).await.unwrap();
            assert_eq!(reply.status, 401, "{}", reply.text());
            canaries.assert_absent(&format!("the response to case {case}"), &reply.body);
            canaries.assert_absent(
                &format!("the headers for case {case}"),
                format!("{:?}", reply.headers).as_bytes(),
            );
        }
        serving.end(&setup, &canaries).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_shows_no_claim() {
    let (setup, canaries) = (Setup::new(), canaries());
    let client = HttpClient::trusting(&setup.ca);
    let serving = setup.serve("proxy", &["--kubeconfig", "proxy.kubeconfig"]).await;
    for case in 0..CASES.len() {
        let request = http::Request::get(format!("https://{}/api/v1/pods", serving.listen))
            .header("authorization", format!("Bearer {}", setup.token(case)))
            .body(bytes::Bytes::new())
            .unwrap();
        let reply = Box::pin(client.send(request)).await.unwrap();
        assert_eq!(reply.status, 401, "{}", reply.text());
        canaries.assert_absent(&format!("the response to case {case}"), &reply.body);
        canaries.assert_absent(
            &format!("the headers for case {case}"),
            format!("{:?}", reply.headers).as_bytes(),
        );
    }
    serving.end(&setup, &canaries).await;
}

#[test]
fn explain_and_eval_show_claims_only_when_asked() {
    let (setup, canaries) = (Setup::new(), canaries());
    let mut exposed = 0;
    for case in 0..CASES.len() {
        let token = setup.token(case);
        for command in ["explain", "eval"] {
            for output in ["text", "json"] {
                let common =
                    ["authn", command, "--config", "config.yaml", "--jwks", "keys.json", "-o", output];
                for profile in ["kube", "hardened"] {
                    let outcome = setup.run(&[&common[..], &["--profile", profile]].concat(), &token);
                    assert_eq!(outcome.code(), Some(1), "{}", String::from_utf8_lossy(&outcome.stderr));
                    let printed = [outcome.stdout, outcome.stderr].concat();
                    assert!(!printed.is_empty());
                    canaries.assert_absent(&format!("{command} -o {output} of case {case}"), &printed);
                }
            }
        }
        let shown = setup.run(
            &["authn", "explain", "--config", "config.yaml", "--jwks", "keys.json", "--show-values"],
            &token,
        );
        exposed += usize::from(!canaries.find(&shown.stdout).is_empty());
    }
    // The search would find them.
    assert_eq!(exposed, CASES.len());
}

#[test]
fn failed_test_case_shows_no_claim() {
    let (setup, canaries) = (Setup::new(), canaries());
    let case = |case: usize| {
        let claims: Value =
            serde_json::from_str(&format!("{{\"sub\": \"ann\", {}}}", case_claims(case).replace("e999", "")))
                .unwrap();
        json!({"name": format!("case {case}"), "claims": claims, "expect": {"user": {"username": "oidc:ann"}}})
    };
    let suite = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "AuthenticationTest", "configuration": "config.yaml",
        "cases": (0..CASES.len()).map(case).collect::<Vec<_>>(),
    });
    setup.write("suite.yaml", &suite.to_string());
    for output in ["text", "json"] {
        let outcome = setup.run(&["authn", "test", "suite.yaml", "-o", output], "");
        assert_eq!(outcome.code(), Some(1), "{}", String::from_utf8_lossy(&outcome.stderr));
        let printed = String::from_utf8_lossy(&[outcome.stdout, outcome.stderr].concat()).into_owned();
        // Without its exponent, `vast` is a valid claim.
        let refused = printed.matches("claim_rule").count() + printed.matches("cost").count();
        assert!(refused >= CASES.len() - 1, "{printed}");
        canaries.assert_absent("the report", printed.as_bytes());
    }
}
