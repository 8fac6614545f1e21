//! The kubeconfigs, each with its verdict.

/// A kubeconfig, and what every verb says about it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) flags: &'static [&'static str],
    pub(crate) has_file: bool,
    pub(crate) proxy: &'static str,
    pub(crate) kuberc: Kuberc,
    pub(crate) verdict: Verdict,
}

pub(crate) enum Kuberc {
    None,
    DenyAll,
    Allow(&'static str),
    Broken,
}

pub(crate) enum Verdict {
    Usable,
    /// Exit code 3; part of the first error.
    Invalid(&'static str),
    /// Exit code 5; part of the first error.
    Denied(&'static str),
}

use Verdict::{Denied, Invalid, Usable};

const CLUSTER: &str = "{server: 'https://127.0.0.1:1', certificate-authority: ca.crt}";
const V1: &str = "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never";
const SIGNER: &str = "pathExec: $DIR/plugin";

fn text(cluster: &str, user: &str) -> String {
    format!(
        "clusters: [{{name: alpha, cluster: {cluster}}}]\nusers: [{{name: ann, user: {user}}}]\n\
         contexts:\n- {{name: dev, context: {{cluster: alpha, user: ann}}}}\n\
         - {{name: lost, context: {{cluster: none, user: ann}}}}\n- {{name: stray, context: {{cluster: alpha, user: none}}}}\n\
         current-context: dev\n"
    )
}

fn case(name: &'static str, text: String, verdict: Verdict) -> Case {
    Case { name, text, flags: &[], has_file: true, proxy: "", kuberc: Kuberc::None, verdict }
}

fn cluster(name: &'static str, cluster: &str, verdict: Verdict) -> Case {
    case(name, text(cluster, "{token: t}"), verdict)
}

fn user(name: &'static str, user: &str, verdict: Verdict) -> Case {
    case(name, text(CLUSTER, user), verdict)
}

fn flags(name: &'static str, flags: &'static [&'static str], verdict: Verdict) -> Case {
    Case { flags, ..user(name, "{token: t}", verdict) }
}

fn exec(name: &'static str, fields: &str, verdict: Verdict) -> Case {
    user(name, &format!("{{exec: {{{fields}}}}}"), verdict)
}

fn provider(name: &'static str, provider: &str, config: &str, verdict: Verdict) -> Case {
    user(name, &format!("{{auth-provider: {{name: {provider}, config: {{{config}}}}}}}"), verdict)
}

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    [files(), clusters(), users(), programs()].into_iter().flatten().collect()
}

fn files() -> Vec<Case> {
    let missing = Case {
        has_file: false,
        ..user("no kubeconfig", "{}", Invalid("no configuration has been provided"))
    };
    vec![
        missing,
        case("not YAML", "clusters: [".to_owned(), Invalid("unclosed bracket")),
        case("control characters", "\u{0}".to_owned(), Invalid("control character is not allowed")),
        case("a list", "[]".to_owned(), Invalid("expected a mapping with")),
        case("wrong type", "clusters: 5".to_owned(), Invalid("clusters: expected a list, found a number")),
        case(
            "wrong type of a field",
            text("{server: [a]}", "{}"),
            Invalid("clusters[0].cluster.server: expected a string, found a list"),
        ),
        case(
            "invalid base64",
            text("{server: 'https://h', certificate-authority-data: '%'}", "{}"),
            Invalid("expected base64 with padding"),
        ),
        case(
            "duplicate name",
            "contexts: [{name: a}, {name: a}]".to_owned(),
            Invalid("contexts[1].name: duplicate name"),
        ),
        case(
            "wrong type of a field, and a missing cluster",
            "users: [{name: ann, user: {token: [t]}}]\ncontexts: [{name: dev, context: {cluster: none, user: ann}}]\n\
             current-context: dev\n"
                .to_owned(),
            Invalid("users[0].user.token: expected a string, found a list"),
        ),
        case("empty file", String::new(), Invalid("no configuration has been provided")),
        case("no contexts", "clusters: []".to_owned(), Invalid("no configuration has been provided")),
        case(
            "current context missing",
            "current-context: x".to_owned(),
            Invalid("context was not found for specified context: x"),
        ),
        flags("unknown context", &["--context", "prod"], Invalid("context \"prod\" does not exist")),
        flags("unknown cluster", &["--cluster", "beta"], Invalid("cluster \"beta\" does not exist")),
        flags("unknown user", &["--user", "ben"], Invalid("auth info \"ben\" does not exist")),
        flags(
            "context without its cluster",
            &["--context", "lost"],
            Invalid("names cluster \"none\", which does not exist"),
        ),
        flags(
            "context without its user",
            &["--context", "stray"],
            Invalid("context \"stray\" names user \"none\", which does not exist"),
        ),
        flags(
            "context without its user, impersonating",
            &["--context", "stray", "--as", "bob"],
            Invalid("context \"stray\" names user \"none\", which does not exist"),
        ),
        flags("context without its user over http", &["--context", "stray", "--server", "http://h"], Usable),
        flags(
            "context without its user, certificate by flag",
            &["--context", "stray", "--client-certificate", "tls.crt", "--client-key", "tls.key"],
            Usable,
        ),
        flags("existing context", &["--context", "dev"], Usable),
        flags("server by flag", &["--server", "https://127.0.0.1:1"], Usable),
        flags("invalid server by flag", &["--server", "https://a b"], Invalid("invalid server")),
        flags(
            "missing authority by flag",
            &["--certificate-authority", "none"],
            Invalid("unable to read certificate-authority"),
        ),
        flags(
            "certificate without key by flag",
            &["--client-certificate", "tls.crt"],
            Invalid("client-key-data or client-key must be specified"),
        ),
        flags("groups without a user by flag", &["--as-group", "g"], Invalid("without impersonating a user")),
    ]
}

fn clusters() -> Vec<Case> {
    vec![
        cluster("system roots", "{server: 'https://127.0.0.1:1'}", Usable),
        cluster("authority data", "{server: 'https://127.0.0.1:1', certificate-authority-data: $CA}", Usable),
        cluster("insecure", "{server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}", Usable),
        cluster(
            "empty authority file",
            "{server: 'https://127.0.0.1:1', certificate-authority: empty}",
            Usable,
        ),
        cluster("plain http", "{server: 'http://127.0.0.1:1'}", Usable),
        cluster("no scheme, so http", "{server: '127.0.0.1:1'}", Usable),
        cluster("path", "{server: 'https://127.0.0.1:1/k8s'}", Usable),
        cluster("http proxy", "{server: 'https://127.0.0.1:1', proxy-url: 'http://127.0.0.1:1'}", Usable),
        cluster("socks proxy", "{server: 'https://127.0.0.1:1', proxy-url: 'socks5://127.0.0.1:1'}", Usable),
        cluster("empty entry", "{}", Invalid("no server found for cluster \"alpha\"")),
        cluster("host with a space", "{server: 'https://a b'}", Invalid("invalid server")),
        cluster(
            "unknown scheme",
            "{server: 'ftp://127.0.0.1'}",
            Invalid("the scheme is neither https nor http"),
        ),
        cluster("port out of range", "{server: 'https://127.0.0.1:99999'}", Invalid("invalid server")),
        cluster("host with an empty label", "{server: 'https://a..b'}", Invalid("invalid server")),
        cluster("only a path", "{server: '/k8s'}", Invalid("invalid server")),
        cluster(
            "invalid server name",
            "{server: 'https://127.0.0.1:1', tls-server-name: 'a b'}",
            Invalid("invalid tls-server-name \"a b\""),
        ),
        cluster(
            "proxy with unknown scheme",
            "{server: 'https://h', proxy-url: 'ftp://p'}",
            Invalid("unsupported scheme \"ftp\""),
        ),
        cluster(
            "proxy without host",
            "{server: 'https://h', proxy-url: 'http://'}",
            Invalid("invalid 'proxy-url'"),
        ),
        cluster(
            "proxy with invalid port",
            "{server: 'https://h', proxy-url: 'http://p:x'}",
            Invalid("invalid 'proxy-url'"),
        ),
        Case {
            proxy: "ftp://p",
            ..cluster("invalid HTTPS_PROXY", "{server: 'https://h'}", Invalid("invalid proxy in HTTPS_PROXY"))
        },
        cluster(
            "authority file missing",
            "{server: 'https://h', certificate-authority: none}",
            Invalid("unable to read certificate-authority"),
        ),
        cluster(
            "two authorities",
            "{server: 'https://h', certificate-authority: ca.crt, certificate-authority-data: $CA}",
            Invalid("certificate-authority-data and certificate-authority are both specified"),
        ),
        cluster(
            "authority and insecure",
            "{server: 'https://h', certificate-authority: ca.crt, insecure-skip-tls-verify: true}",
            Invalid("root certificates file with the insecure flag"),
        ),
        cluster(
            "authority without PEM",
            "{server: 'https://h', certificate-authority: text}",
            Invalid("missing PEM certificate in certificate-authority"),
        ),
        cluster(
            "authority encoded twice",
            "{server: 'https://h', certificate-authority-data: $CA_TWICE}",
            Invalid("missing PEM certificate in certificate-authority"),
        ),
        cluster(
            "authority file still in base64",
            "{server: 'https://h', certificate-authority: ca.twice}",
            Invalid("missing PEM certificate in certificate-authority"),
        ),
        cluster(
            "authority is garbage",
            "{server: 'https://h', certificate-authority: garbage.pem}",
            Invalid("invalid certificate in certificate-authority"),
        ),
        cluster(
            "authority is a directory",
            "{server: 'https://h', certificate-authority: .kube}",
            Invalid("unable to read certificate-authority"),
        ),
        cluster(
            "authority without end",
            "{server: 'https://h', certificate-authority: /dev/zero}",
            Invalid("larger than the limit of 16 MiB"),
        ),
    ]
}

fn users() -> Vec<Case> {
    vec![
        user("no credential", "{}", Usable),
        user("token", "{token: t}", Usable),
        user("token file", "{tokenFile: token}", Usable),
        user("token and unreadable token file", "{token: t, tokenFile: none}", Usable),
        user("password", "{username: u, password: p}", Usable),
        user("certificate files", "{client-certificate: tls.crt, client-key: tls.key}", Usable),
        user("certificate data", "{client-certificate-data: $CERT, client-key-data: $KEY}", Usable),
        user(
            "certificate data and key file",
            "{client-certificate-data: $CERT, client-key: tls.key}",
            Usable,
        ),
        user("certificate and token", "{client-certificate: tls.crt, client-key: tls.key, token: t}", Usable),
        user("key alone", "{client-key: tls.key}", Usable),
        user("token with a line break", "{token: \"a\\nb\"}", Invalid("invalid token")),
        user("token with white space around", "{token: ' a '}", Invalid("invalid token")),
        user("token file missing", "{tokenFile: none}", Invalid("unable to read tokenFile")),
        user("token file empty", "{tokenFile: empty}", Invalid("read empty token from file")),
        user("token file blank", "{tokenFile: blank}", Invalid("read empty token from file")),
        user("token file with control characters", "{tokenFile: control}", Invalid("invalid token in file")),
        user("token file without end", "{tokenFile: /dev/zero}", Invalid("larger than the limit of 16 MiB")),
        user("token and password", "{token: t, username: u}", Invalid("found [token basicAuth]")),
        user(
            "token file and password",
            "{tokenFile: token, username: u}",
            Invalid("may be set, but not both"),
        ),
        user(
            "key missing",
            "{client-certificate: tls.crt}",
            Invalid("client-key-data or client-key must be specified"),
        ),
        user(
            "certificate file missing",
            "{client-certificate: none, client-key: tls.key}",
            Invalid("unable to read client-cert"),
        ),
        user(
            "key file missing",
            "{client-certificate: tls.crt, client-key: none}",
            Invalid("unable to read client-key"),
        ),
        user(
            "two certificates",
            "{client-certificate: tls.crt, client-certificate-data: $CERT, client-key: tls.key}",
            Invalid("client-cert-data and client-cert are both specified"),
        ),
        user(
            "two keys",
            "{client-certificate: tls.crt, client-key: tls.key, client-key-data: $KEY}",
            Invalid("client-key-data and client-key are both specified"),
        ),
        user(
            "key of another certificate",
            "{client-certificate: tls.crt, client-key: other.key}",
            Invalid("private key does not match public key"),
        ),
        user(
            "key data of another certificate",
            "{client-certificate-data: $CERT, client-key-data: $OTHER_KEY}",
            Invalid("private key does not match public key"),
        ),
        user(
            "certificate without PEM",
            "{client-certificate: text, client-key: tls.key}",
            Invalid("failed to find any PEM data in certificate input"),
        ),
        user(
            "key without PEM",
            "{client-certificate: tls.crt, client-key: text}",
            Invalid("failed to find any PEM data in key input"),
        ),
        user(
            "certificate is garbage",
            "{client-certificate: garbage.pem, client-key: tls.key}",
            Invalid("malformed certificate"),
        ),
        user(
            "certificate and key exchanged",
            "{client-certificate: tls.key, client-key: tls.crt}",
            Invalid("but did find a private key"),
        ),
        user("groups without a user", "{token: t, as-groups: [g]}", Invalid("without impersonating a user")),
        user(
            "impersonation with a line break",
            "{token: t, as: \"a\\nb\"}",
            Invalid("invalid impersonation value in `as`"),
        ),
    ]
}

fn programs() -> Vec<Case> {
    let plugin = format!("command: $DIR/plugin, {V1}");
    let denied = |case: Case, kuberc| Case { kuberc, ..case };
    vec![
        exec("plugin", &plugin, Usable),
        exec("plugin not installed", &format!("command: none, {V1}"), Usable),
        user("plugin and token", &format!("{{token: t, exec: {{{plugin}}}}}"), Usable),
        exec("plugin without command", V1, Invalid("command must be specified for ann")),
        exec(
            "plugin without version",
            "command: p, interactiveMode: Never",
            Invalid("apiVersion must be specified for ann"),
        ),
        exec(
            "plugin without mode",
            "command: p, apiVersion: client.authentication.k8s.io/v1",
            Invalid("interactiveMode must be specified for ann"),
        ),
        exec(
            "plugin with unknown mode",
            "command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Maybe",
            Invalid("invalid interactiveMode for ann: \"Maybe\""),
        ),
        exec(
            "plugin with removed version",
            "command: p, apiVersion: client.authentication.k8s.io/v1alpha1, interactiveMode: Never",
            Invalid("invalid apiVersion"),
        ),
        user(
            "token and plugin with unknown version",
            "{token: t, exec: {command: p, apiVersion: v9, interactiveMode: Never}}",
            Invalid("invalid apiVersion \"v9\""),
        ),
        exec(
            "plugin with unnamed variable",
            &format!("{plugin}, env: [{{value: v}}]"),
            Invalid("env variable name must be specified for ann"),
        ),
        user(
            "plugin and auth provider",
            &format!("{{exec: {{{plugin}}}, auth-provider: {{name: oidc}}}}"),
            Invalid("authProvider cannot be provided in combination with an exec plugin"),
        ),
        denied(exec("plugin that is allowed", &plugin, Usable), Kuberc::Allow("$DIR/plugin")),
        denied(
            exec(
                "plugin that is not listed",
                &plugin,
                Denied("is not permitted by the credential plugin allowlist"),
            ),
            Kuberc::Allow("/usr/bin/other"),
        ),
        denied(exec("no plugin is allowed", &plugin, Denied("policy set to \"DenyAll\"")), Kuberc::DenyAll),
        denied(
            exec("broken kuberc", &plugin, Denied("is not allowed to run: invalid kuberc")),
            Kuberc::Broken,
        ),
        denied(user("broken kuberc without a plugin", "{token: t}", Usable), Kuberc::Broken),
        provider("oidc", "oidc", "idp-issuer-url: 'https://i', client-id: c", Usable),
        provider("oidc without issuer", "oidc", "client-id: c", Invalid("missing \"idp-issuer-url\"")),
        provider(
            "oidc with empty issuer",
            "oidc",
            "idp-issuer-url: '', client-id: c",
            Invalid("missing \"idp-issuer-url\""),
        ),
        provider(
            "oidc without client",
            "oidc",
            "idp-issuer-url: 'https://i'",
            Invalid("missing \"client-id\""),
        ),
        provider(
            "oidc with unreadable authority",
            "oidc",
            "idp-issuer-url: 'https://i', client-id: c, idp-certificate-authority: none",
            Invalid("certificate authority of the identity provider"),
        ),
        provider(
            "oidc with invalid authority",
            "oidc",
            "idp-issuer-url: 'https://i', client-id: c, idp-certificate-authority-data: eA==",
            Invalid("certificate authority of the identity provider"),
        ),
        provider("gcp", "gcp", "", Invalid("auth-provider \"gcp\" has been removed from Kubernetes")),
        provider("azure", "azure", "", Invalid("auth-provider \"azure\" has been removed from Kubernetes")),
        provider("unknown provider", "corp", "", Invalid("no Auth Provider found for name \"corp\"")),
        denied(
            provider("signer that is allowed", "externalSigner", SIGNER, Usable),
            Kuberc::Allow("$DIR/plugin"),
        ),
        provider("signer that is not allowed", "externalSigner", SIGNER, Denied("external signer")),
        provider("signer without program", "externalSigner", "", Invalid("Must provide pathExec")),
        provider(
            "signer with pin",
            "externalSigner",
            "pathExec: p, pin: '1'",
            Invalid("a `pin` in the kubeconfig is not allowed"),
        ),
        provider(
            "signer with unknown version",
            "externalSigner",
            "pathExec: p, signerApiVersion: v9",
            Invalid("invalid value of `signerApiVersion`"),
        ),
        provider(
            "signer with unknown protocol",
            "externalSigner",
            "pathExec: p, signerProtocol: x",
            Invalid("invalid value of `signerProtocol`"),
        ),
        user(
            "signer and token",
            "{token: t, auth-provider: {name: externalSigner, config: {pathExec: p}}}",
            Invalid("cannot be combined with a token"),
        ),
    ]
}
