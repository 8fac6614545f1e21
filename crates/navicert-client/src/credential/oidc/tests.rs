//! ID tokens: valid, expiring, and renewed at a provider over real sockets.

use navicert_testkit::{Answer, Ca, HttpServer, wait};
use navicert_types::Clock;
use navicert_types::clock::ManualClock;
use serde_json::json;

use super::*;
use crate::config::CredentialReader;
use crate::exec;
use crate::kubeconfig::{Effective, OsFileSystem};
use navicert_types::kubeconfig::{AuthInfo, Cluster};

const NOW: i64 = 1_900_000_000;

fn id_token(name: &str, expires: i64) -> String {
    let part =
        |value: serde_json::Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{name}", part(json!({"alg": "none"})), part(json!({"exp": expires, "sub": "ann"})))
}

/// A provider that returns the ID token `new` and the refresh token `r2` for the refresh token `r1`.
struct Fixture {
    ca: Ca,
    provider: HttpServer,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        let ca = Ca::new("provider");
        let provider = HttpServer::start(&ca);
        let endpoint = provider.url_of("/token");
        provider.answer(
            "/dex/.well-known/openid-configuration",
            Answer::json(&json!({"token_endpoint": endpoint})),
        );
        provider.answer_with("/token", |request| {
            if !request.text().contains("refresh_token=r1") || request.text().contains("wrong") {
                return Answer::json(&json!({"error": "invalid_grant"})).with_status(400);
            }
            Answer::json(&json!({"id_token": id_token("new", NOW + 7_200), "refresh_token": "r2"}))
        });
        Fixture { ca, provider, clock: Arc::new(ManualClock::at(NOW)) }
    }

    fn section(&self, more: &[(&str, &str)]) -> AuthProviderConfig {
        let mut section = AuthProviderConfig { name: "oidc".into(), ..AuthProviderConfig::default() };
        let authority = STANDARD.encode(self.ca.pem());
        let issuer = self.provider.url_of("/dex/");
        let usual = [
            ("idp-issuer-url", issuer.as_str()),
            ("client-id", "kubernetes"),
            ("idp-certificate-authority-data", authority.as_str()),
        ];
        for (name, value) in usual.iter().chain(more) {
            section.config.insert((*name).to_owned(), Secret::new((*value).to_owned()));
        }
        section
    }

    fn client_context(&self) -> ClientContext {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        ClientContext { clock, ..ClientContext::new(navicert_plugin::Environment::empty()) }
    }

    fn oidc(&self, more: &[(&str, &str)]) -> Oidc {
        let settings = OidcSettings::read(&self.section(more), &OsFileSystem).unwrap();
        Oidc::new(settings, None, &self.client_context())
    }

    /// The credential source of a user.
    fn source_of(&self, user: AuthInfo) -> Result<Arc<dyn CredentialSource>, ClientProblem> {
        let effective = Effective {
            context: None,
            context_exists: true,
            namespace: String::new(),
            cluster_name: String::new(),
            cluster_exists: true,
            cluster: Cluster { server: "https://127.0.0.1".into(), ..Cluster::default() },
            user_name: String::new(),
            user_exists: true,
            user,
        };
        let reader = CredentialReader {
            effective: &effective,
            files: &OsFileSystem,
            now: self.clock.monotonic(),
            #[cfg(feature = "signer")]
            allow_pin: false,
        };
        let mut problems = Vec::new();
        let plan = reader.read(&mut problems);
        match problems.pop() {
            Some(problem) => Err(problem),
            None => Ok(plan.source(&exec::ExecSettings::default(), &self.client_context())),
        }
    }
}

async fn current(source: &dyn CredentialSource) -> Result<String, String> {
    let credential = wait::within("a token", source.get(RequestOrigin::Background)).await;
    let credential = credential.map_err(|error| error.to_string())?;
    let header = credential.authorization.as_ref().unwrap().to_str().unwrap().to_owned();
    Ok(header.rsplit('.').next().unwrap().to_owned())
}

// C165
#[tokio::test]
async fn valid_token_is_used_until_ten_seconds_before_expiry_and_then_renewed_once() {
    let fixture = Fixture::new();
    let old = id_token("old", NOW + 60);
    let source = fixture.oidc(&[("id-token", &old), ("refresh-token", "r1")]);
    assert_eq!(current(&source).await, Ok("old".into()));
    fixture.clock.advance(Duration::from_secs(49));
    assert!(source.cached().is_some());
    fixture.clock.advance(Duration::from_secs(1));
    assert!(source.cached().is_none());
    let (one, two) = tokio::join!(current(&source), current(&source));
    assert_eq!((one, two), (Ok("new".into()), Ok("new".into())));
    assert_eq!(fixture.provider.count("/token"), 1);
    assert_eq!(source.cached().unwrap().generation, Generation::FIRST.next());
    let request = fixture.provider.requests().pop().unwrap();
    assert_eq!(request.text(), "grant_type=refresh_token&refresh_token=r1&client_id=kubernetes");
    assert_eq!(request.header("authorization"), None);
}

// C165
#[tokio::test]
async fn client_secret_goes_into_the_header_and_if_rejected_into_the_form() {
    let fixture = Fixture::new();
    let source = fixture.oidc(&[("refresh-token", "r1"), ("client-secret", "s p@ce")]);
    assert_eq!(current(&source).await, Ok("new".into()));
    let request = fixture.provider.requests().pop().unwrap();
    let expected = format!("Basic {}", STANDARD.encode("kubernetes:s+p%40ce"));
    assert_eq!(request.header("authorization"), Some(expected.as_str()));

    let fixture = Fixture::new();
    fixture.provider.answer_once("/token", Answer::status(401));
    let source = fixture.oidc(&[("refresh-token", "r1"), ("client-secret", "s p@ce")]);
    assert_eq!(current(&source).await, Ok("new".into()));
    let request = fixture.provider.requests().pop().unwrap();
    assert!(request.text().ends_with("&client_id=kubernetes&client_secret=s%20p%40ce"));
}

// C165: as in client-go, except that the kubeconfig keeps the first one.
#[tokio::test]
async fn renewal_uses_the_latest_refresh_token() {
    let fixture = Fixture::new();
    let source = fixture.oidc(&[("refresh-token", "r1")]);
    assert_eq!(current(&source).await, Ok("new".into()));
    fixture.clock.advance(Duration::from_secs(7_200));
    fixture.provider.answer("/token", Answer::json(&json!({"id_token": id_token("newest", NOW + 14_400)})));
    assert_eq!(current(&source).await, Ok("newest".into()));
    assert!(fixture.provider.requests().pop().unwrap().text().contains("refresh_token=r2&"));
    fixture.clock.advance(Duration::from_secs(7_200));
    assert_eq!(
        current(&source).await,
        Ok("newest".into()),
        "without another refresh token, the last one stays"
    );
    assert!(fixture.provider.requests().pop().unwrap().text().contains("refresh_token=r2&"));
}

// C165, C195
#[tokio::test]
async fn errors_contain_no_secret() {
    let fixture = Fixture::new();
    for (more, expected) in [
        (&[][..], "No valid id-token, and cannot refresh without refresh-token"),
        (&[("id-token", "canary")], "No valid id-token, and cannot refresh without refresh-token"),
        (
            &[("refresh-token", "r1wrong-canary"), ("client-secret", "canary")],
            "failed to refresh token: the identity provider answered 400 (invalid_grant)",
        ),
        (
            &[("refresh-token", "canary"), ("idp-issuer-url", "http://127.0.0.1")],
            "failed to refresh token: identity provider URL is not https",
        ),
    ] {
        let source = fixture.oidc(more);
        assert_eq!(current(&source).await, Err(expected.to_owned()));
        assert!(!format!("{source:?}").contains("canary"));
    }
    fixture.provider.answer("/token", Answer::json(&json!({"access_token": "canary"})));
    let source = fixture.oidc(&[("refresh-token", "r1")]);
    assert_eq!(
        current(&source).await,
        Err("the identity provider's answer did not contain an id_token".into())
    );
}

// C165, C167: a static bearer token disables the provider.
#[tokio::test]
async fn user_with_oidc_provider_gets_its_token_and_removed_providers_are_rejected() {
    let fixture = Fixture::new();
    let mut section = fixture.section(&[("refresh-token", "r1")]);
    let chosen = |section: &AuthProviderConfig, token: &str| {
        fixture.source_of(AuthInfo {
            auth_provider: Some(section.clone()),
            token: Secret::new(token.to_owned()),
            ..AuthInfo::default()
        })
    };
    assert_eq!(current(&*chosen(&section, "").unwrap()).await, Ok("new".into()));
    assert_eq!(current(&*chosen(&section, "a.b.fixed").unwrap()).await, Ok("fixed".into()));
    section.config.shift_remove("client-id");
    assert_eq!(
        chosen(&section, "").unwrap_err().to_string(),
        "missing \"client-id\" in the config of auth-provider \"oidc\""
    );
    for (name, expected) in [
        (
            "gcp",
            "auth-provider \"gcp\" has been removed from Kubernetes; use the exec plugin `gke-gcloud-auth-plugin`",
        ),
        (
            "azure",
            "auth-provider \"azure\" has been removed from Kubernetes; use the exec plugin `kubelogin`",
        ),
        ("other", "no Auth Provider found for name \"other\""),
    ] {
        section.name = name.to_owned();
        assert_eq!(chosen(&section, "").unwrap_err().to_string(), expected);
    }
}

// C163, C165
#[tokio::test]
async fn certificate_is_sent_together_with_the_token() {
    let fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    let identity = fixture.ca.client("ann").issue();
    let files = identity.write_to(folder.path(), "ann");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let users = [
        AuthInfo {
            client_certificate: text(files.certificate.as_ref()),
            client_key: text(files.key.as_ref()),
            ..AuthInfo::default()
        },
        AuthInfo {
            client_certificate_data: std::fs::read(&files.certificate).unwrap(),
            client_key_data: Secret::new(std::fs::read(&files.key).unwrap()),
            ..AuthInfo::default()
        },
    ];
    for user in users {
        let section = fixture.section(&[("refresh-token", "r1")]);
        let source = fixture.source_of(AuthInfo { auth_provider: Some(section), ..user }).unwrap();
        assert!(source.cached().is_none());
        assert_eq!(current(&*source).await, Ok("new".into()));
        let credential = source.cached().unwrap();
        assert!(credential.identity.is_some() && credential.authorization.is_some());
        assert!(credential.expires.is_some());
    }
}
