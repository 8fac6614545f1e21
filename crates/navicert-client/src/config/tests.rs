//! Resolving and building agree, for listed and for generated kubeconfigs.

use std::path::PathBuf;

#[cfg(feature = "exec")]
use navicert_plugin::Policy;

use super::*;
use crate::client::Client;
use crate::kubeconfig::{KubeconfigSources, MemoryFileSystem, Overrides};
use crate::transport::Trust;

const ROOT: &str = "/no-such-root";

/// Files that the fragments name.
struct Fixture {
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Fixture {
    fn new() -> Self {
        let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (one, other) = (made("a.example"), made("b.example"));
        let files = [
            ("tls.crt", one.cert.pem()),
            ("tls.key", one.signing_key.serialize_pem()),
            ("bundle.pem", one.signing_key.serialize_pem() + &one.cert.pem()),
            ("other.key", other.signing_key.serialize_pem()),
            ("garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
            ("text", "text".to_owned()),
            ("empty", String::new()),
            ("token", "t0ken\n".to_owned()),
            ("control", "a\u{1}b".to_owned()),
        ];
        let files = files.into_iter().map(|(name, content)| (PathBuf::from(name), content.into_bytes()));
        Fixture { files: files.collect() }
    }

    fn options(&self, kubeconfig: &str) -> ConfigOptions {
        let config = (PathBuf::from("config"), kubeconfig.as_bytes().to_vec());
        let files = self.files.iter().cloned().chain([config]);
        ConfigOptions::new(Environment::empty(), ROOT)
            .sources(KubeconfigSources::list([PathBuf::from("config")]))
            .files(Arc::new(MemoryFileSystem::new(ROOT, files)))
    }
}

fn text(cluster: &str, user: &str) -> String {
    format!(
        "clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n\
         contexts: [{{name: dev, context: {{cluster: c, user: u}}}}]\ncurrent-context: dev\n"
    )
}

/// A part of an entry, and whether a client can be built with it.
type Fragment = (&'static str, bool);

const SERVERS: &[Fragment] = &[
    ("server: 'https://127.0.0.1:1'", true),
    ("server: 'https://[::1]:6443/k8s'", true),
    ("server: 'https://user:secret@h'", true),
    ("server: ''", false),
    ("server: 'https://a b'", false),
    ("server: 'https://h:99999'", false),
    ("server: 'https://ä'", false),
];
const TRUST: &[Fragment] = &[
    ("", true),
    ("insecure-skip-tls-verify: true", true),
    ("certificate-authority: tls.crt", true),
    ("certificate-authority: empty", true),
    ("certificate-authority: tls.key", false),
    ("certificate-authority: garbage", false),
    ("certificate-authority: none", false),
    ("certificate-authority-data: dGV4dA==", false),
    ("certificate-authority: tls.crt, insecure-skip-tls-verify: true", false),
];
const NAMES: &[Fragment] = &[
    ("", true),
    ("tls-server-name: api.example", true),
    ("tls-server-name: 192.0.2.1", true),
    ("tls-server-name: 'not a name'", false),
];
const PROXIES: &[Fragment] = &[
    ("", true),
    ("proxy-url: 'http://p:3128'", true),
    ("proxy-url: 'socks5://u:p@p'", true),
    ("proxy-url: 'ftp://p'", false),
    ("proxy-url: 'http://'", false),
];
const USERS: &[Fragment] = &[
    ("", true),
    ("token: t", true),
    ("token: \"a\\nb\"", false),
    ("tokenFile: token", true),
    ("token: t, tokenFile: none", true),
    ("tokenFile: none", false),
    ("tokenFile: empty", false),
    ("tokenFile: control", false),
    ("username: u, password: p", true),
    ("tokenFile: token, username: u", false),
    ("client-certificate: tls.crt, client-key: tls.key", true),
    ("client-certificate: tls.crt, client-key: tls.key, token: t", true),
    ("client-certificate: bundle.pem, client-key: bundle.pem", true),
    ("client-certificate: tls.crt, client-key: other.key", false),
    ("client-certificate: garbage, client-key: tls.key", false),
    ("client-certificate: tls.crt, client-key: text", false),
    ("client-certificate: tls.crt", false),
    (
        "exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}",
        cfg!(feature = "exec"),
    ),
    (
        "token: t, exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}",
        true,
    ),
    ("exec: {command: p, apiVersion: client.authentication.k8s.io/v9, interactiveMode: Never}", false),
    ("exec: {command: p, apiVersion: client.authentication.k8s.io/v1}", false),
    (
        "auth-provider: {name: oidc, config: {idp-issuer-url: 'https://i', client-id: c}}",
        cfg!(feature = "oidc"),
    ),
    ("token: t, auth-provider: {name: oidc, config: {idp-issuer-url: 'https://i', client-id: c}}", true),
    ("auth-provider: {name: oidc, config: {idp-issuer-url: '', client-id: c}}", false),
    ("auth-provider: {name: gcp}", false),
    ("auth-provider: {name: externalSigner, config: {pathExec: p}}", false), // not permitted
    ("auth-provider: {name: externalSigner, config: {pathExec: p, pin: '1'}}", false),
    ("token: t, auth-provider: {name: externalSigner, config: {pathExec: p}}", false),
];
const IMPERSONATION: &[Fragment] =
    &[("", true), ("as: bob, as-groups: [dev]", true), ("as-groups: [dev]", false), ("as: \"a\\nb\"", false)];

/// A fixed sequence of pseudo-random numbers.
struct Sequence(u64);

impl Sequence {
    fn pick(&mut self, fragments: &[Fragment]) -> Fragment {
        // Constants of Knuth's MMIX generator; the upper bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every other pick is the first fragment that is valid, so that usable kubeconfigs are not rare.
        let index = usize::try_from(self.0 >> 34).unwrap();
        if index.is_multiple_of(2) { fragments[0] } else { fragments[(index / 2) % fragments.len()] }
    }
}

fn resolves_exactly_if_a_client_can_be_built(count: usize) {
    let (fixture, mut sequence, mut usable) = (Fixture::new(), Sequence(19), 0);
    for _ in 0..count {
        let cluster = [SERVERS, TRUST, NAMES, PROXIES].map(|fragments| sequence.pick(fragments));
        let user = [USERS, IMPERSONATION].map(|fragments| sequence.pick(fragments));
        let join = |parts: &[Fragment]| {
            let parts = parts.iter().map(|(text, _)| *text).filter(|text| !text.is_empty());
            parts.collect::<Vec<_>>().join(", ")
        };
        let kubeconfig = text(&join(&cluster), &join(&user));
        let expected = cluster.iter().chain(&user).all(|(_, is_valid)| *is_valid);
        match fixture.options(&kubeconfig).resolve() {
            Ok(config) => {
                assert!(expected, "resolved: {kubeconfig}");
                Client::new(config).unwrap_or_else(|error| panic!("{error}: {kubeconfig}"));
                usable += 1;
            }
            Err(errors) => {
                assert!(!expected, "{errors}: {kubeconfig}");
                for error in &errors {
                    assert!(!error.to_string().contains("secret"), "{error}");
                }
            }
        }
    }
    assert!(usable > count / 20 && usable < count, "{usable} of {count} are usable");
}

#[test]
fn resolving_succeeds_exactly_if_building_does() {
    resolves_exactly_if_a_client_can_be_built(400);
}

#[test]
#[ignore = "takes a minute; `make soak` runs it"]
fn resolving_succeeds_exactly_if_building_does_for_ten_thousand_kubeconfigs() {
    resolves_exactly_if_a_client_can_be_built(10_000);
}

#[test]
fn every_problem_is_reported_at_once_with_class_location_and_help() {
    let cluster = "server: 'https://a b', certificate-authority-data: dGV4dA==";
    let kubeconfig =
        text(cluster, "token: \"a\\nb\", as: \"a\\nb\", client-certificate: text, client-key: text");
    let errors = Fixture::new().options(&kubeconfig).resolve().unwrap_err();
    let found: Vec<_> = errors
        .iter()
        .map(|error| (error.class(), error.stage(), error.location().map(ConfigLocation::line)))
        .collect();
    use ConfigErrorClass as Class;
    use ConfigErrorStage as Stage;
    assert_eq!(
        found,
        [(Class::Server, Stage::Build, Some(1)), (Class::Impersonation, Stage::Request, Some(2)),],
        "without a usable address there is no https, so that credentials are not used: {errors}"
    );
    let kubeconfig = kubeconfig.replace("a b'", "h'");
    let errors = Fixture::new().options(&kubeconfig).resolve().unwrap_err();
    let classes: Vec<_> = errors.iter().map(ConfigError::class).collect();
    assert_eq!(classes, [Class::Authority, Class::Impersonation, Class::ClientCertificate, Class::Token]);
    assert!(errors.iter().next().unwrap().help().is_some());
    assert_eq!(errors.class(), Class::Authority);
}

#[test]
fn authority_that_is_encoded_twice_is_recognised() {
    use base64::Engine as _;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let pem = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap().cert.pem();
    let twice = encode(encode(pem.as_bytes()).as_bytes());
    let kubeconfig = text(&format!("server: 'https://h', certificate-authority-data: {twice}"), "");
    let errors = Fixture::new().options(&kubeconfig).resolve().unwrap_err();
    assert_eq!(
        errors.iter().next().unwrap().help(),
        Some("the certificate is encoded in base64 twice; decode it once")
    );
}

#[cfg(feature = "exec")]
#[test]
fn policy_denial_has_its_own_class_and_only_concerns_users_of_plugins() {
    let exec =
        "exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
    for (user, class) in [(exec, Some(ConfigErrorClass::PolicyDenied)), ("token: t", None)] {
        let options = Fixture::new().options(&text("server: 'https://h'", user));
        assert!(options.resolve().is_ok());
        let denied = options.plugin_policy(Policy::DenyAll).resolve();
        assert_eq!(denied.err().map(|errors| errors.class()), class, "{user}");
    }
}

#[test]
fn credential_of_a_missing_feature_is_an_error_that_names_it() {
    let exec = "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
    let oidc = "auth-provider: {name: oidc, config: {idp-issuer-url: 'https://i', client-id: c}}";
    let signer = "auth-provider: {name: externalSigner, config: {pathExec: p}}";
    for (feature, is_built_in, user, what) in [
        ("exec", cfg!(feature = "exec"), exec, "exec plugin `aws`"),
        ("oidc", cfg!(feature = "oidc"), oidc, "auth-provider `oidc`"),
        ("signer", cfg!(feature = "signer"), signer, "auth-provider `externalSigner`"),
    ] {
        let resolved = Fixture::new().options(&text("server: 'https://h'", user)).resolve();
        let class = resolved.as_ref().err().map(ConfigErrors::class);
        assert_eq!(class == Some(ConfigErrorClass::MissingFeature), !is_built_in, "{user}: {class:?}");
        if is_built_in {
            continue;
        }
        let errors = resolved.unwrap_err();
        let found: Vec<_> = errors.iter().map(|error| (error.to_string(), error.stage())).collect();
        let expected =
            format!("{what} is not supported: navicert-client was built without its feature `{feature}`");
        assert_eq!(found, [(expected, ConfigErrorStage::Build)]);
        let error = errors.iter().next().unwrap();
        assert_eq!(error.location().map(ConfigLocation::line), Some(2));
        assert_eq!(error.help(), Some("enable the feature in Cargo.toml, or use another kind of credential"));
        // A credential that is not used needs no feature.
        for (server, also) in [("http://h", ""), ("https://h", "token: t, ")] {
            let is_used = feature == "signer" && server == "https://h";
            let kubeconfig = text(&format!("server: '{server}'"), &format!("{also}{user}"));
            assert_eq!(Fixture::new().options(&kubeconfig).resolve().is_err(), is_used, "{kubeconfig}");
        }
    }
}

// C190
#[test]
fn service_account_is_used_only_without_a_kubeconfig() {
    const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let certificate = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap().cert.pem();
    let files = [("token", "t".to_owned()), ("ca.crt", certificate), ("namespace", "web".to_owned())];
    let files = files.map(|(name, content)| (PathBuf::from(name), content.into_bytes()));
    let variables = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    let options = ConfigOptions::new(variables.into_iter().collect(), "/")
        .files(Arc::new(MemoryFileSystem::new(ACCOUNT, files.clone())));
    let config = options.resolve().unwrap();
    assert!(config.is_in_cluster() && config.context().is_none());
    assert_eq!((config.server().as_str(), config.namespace()), ("https://10.0.0.1:443", "web"));
    assert_eq!(config.credential_kinds(), ["tokenFile"]);
    assert!(matches!(config.transport.trust, Trust::File(_)));
    Client::new(config).unwrap();
    let outside = options.clone().environment(Environment::empty()).resolve().unwrap_err();
    assert_eq!(outside.class(), ConfigErrorClass::NoConfiguration);
    // A kubeconfig that selects nothing is an error, in a pod too.
    let named = options.kubeconfig("/no-such-file").resolve().unwrap_err();
    assert_eq!(named.class(), ConfigErrorClass::Unreadable);
}

#[test]
fn overrides_select_other_entries_and_missing_ones_are_listed() {
    let options = Fixture::new().options(&text("server: 'https://h'", "token: t"));
    let error = options.clone().context("prod").resolve().unwrap_err();
    let error = error.iter().next().unwrap();
    assert_eq!(error.to_string(), "context \"prod\" does not exist");
    assert_eq!(error.help(), Some("select an existing context: `dev`"));
    let overrides = Overrides { server: "https://other".into(), ..Overrides::default() };
    assert_eq!(options.overrides(overrides).resolve().unwrap().server(), "https://other");
}

/// The texts of every error of a kubeconfig.
fn all_errors(kubeconfig: &str) -> Vec<String> {
    let errors = Fixture::new().options(kubeconfig).resolve().unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn decode_errors_and_problems_of_the_context_are_reported_together() {
    let contexts = "contexts: [{name: dev, context: {cluster: c, user: u}}]\ncurrent-context: dev\n";
    let cluster = "clusters: [{name: c, cluster: {server: 'https://h'}}]\n";
    let token = "users.0.user.token: expected a string, found a list".replace(".0", "[0]");
    // A mistyped field of the user, and a cluster that does not exist.
    let text = format!("clusters: []\nusers: [{{name: u, user: {{token: []}}}}]\n{contexts}");
    assert_eq!(
        all_errors(&text),
        [token.as_str(), "context \"dev\" names cluster \"c\", which does not exist"]
    );
    // A mistyped field of another cluster does not hide the problems of this one.
    let text = format!(
        "clusters: [{{name: c, cluster: {{server: 'https://h', certificate-authority: text}}}}, \
         {{name: d, cluster: {{server: 5}}}}]\nusers: [{{name: u, user: {{client-certificate: tls.crt}}}}]\n{contexts}"
    );
    assert_eq!(
        all_errors(&text),
        [
            "clusters[1].cluster.server: expected a string, found a number",
            "client-key-data or client-key must be specified for u to use the clientCert authentication method.",
            "missing PEM certificate in certificate-authority",
        ]
    );
    // The selected user's own errors are not known: it may have a credential.
    let text = format!(
        "{cluster}users: [{{name: u, user: {{client-certificate: tls.crt, client-key: []}}}}]\n{contexts}"
    );
    assert_eq!(all_errors(&text), ["users[0].user.client-key: expected a string, found a list"]);
}

#[test]
fn problems_that_depend_on_a_field_that_cannot_be_decoded_are_not_reported() {
    let rest =
        "users: [{name: u, user: {token: t}}]\ncontexts: [{name: dev, context: {cluster: c, user: x}}]\n";
    let dev = "current-context: dev\n";
    for (text, expected) in [
        // The name of a cluster, the list, the selected context and the name of the context are unknown.
        (
            format!("clusters: [{{name: [c]}}]\n{rest}{dev}"),
            "clusters[0].name: expected a string, found a list",
        ),
        (format!("clusters: 5\n{rest}{dev}"), "clusters: expected a list, found a number"),
        (
            format!("clusters: []\ncontexts: [{{name: dev, context: {{cluster: 5, user: x}}}}]\n{dev}"),
            "contexts[0].context.cluster: expected a string, found a number",
        ),
        (
            format!("clusters: []\n{rest}current-context: []\n"),
            "current-context: expected a string, found a list",
        ),
        (format!("kind: List\nclusters: []\n{rest}{dev}"), "kind: unknown kind `List`"),
        (format!("clusters: []\n{rest}{dev}other: ["), "unclosed bracket"),
    ] {
        let errors = all_errors(&text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with(expected.split(':').next().unwrap()), "{text}: {errors:?}");
    }
}

#[test]
fn invalid_server_is_not_reported_as_plain_http_too() {
    for server in ["https://::1:6443", "https://a b", "/k8s"] {
        let options = Fixture::new().options(&text(&format!("server: '{server}'"), "token: t"));
        let report = options.report(&options.load().unwrap());
        assert_eq!((report.errors().len(), report.warnings().len()), (1, 0), "{server}: {report:?}");
    }
}
