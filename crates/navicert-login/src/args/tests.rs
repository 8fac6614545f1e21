use std::path::Path;
use std::time::Duration;

use navicert_types::tree::{Syntax, parse as parse_tree};

use super::*;
use crate::error::LoginError;
use crate::request::{GrantType, LoginRequest, PkceMethod, SecretSource, Storage, TokenKind, TokenSource};

const REQUIRED: [&str; 2] = ["--oidc-issuer-url=https://id.example", "--oidc-client-id=c"];

fn request(words: &[&str]) -> Result<LoginRequest, LoginError> {
    let words: Vec<&str> = REQUIRED.iter().chain(words).copied().collect();
    let flags = parse(&words)?;
    login_request(Form::Own, &flags, Some(Path::new("/home/ann")), ExtensionDefaults::default())
}

fn usage_error(words: &[&str]) -> String {
    match request(words) {
        Err(LoginError::Usage(text)) => text,
        other => panic!("{words:?}: {other:?}"),
    }
}

// L103
#[test]
fn alias_names_of_the_program_mean_login() {
    for name in ["kubectl-oidc_login", "/usr/bin/kubectl-oidc-login", "./kubelogin", "kubelogin.exe"] {
        assert!(is_alias(name.as_ref()), "{name}");
    }
    for name in ["navicert", "/usr/bin/kubectl-navicert", "kubelogin2", ""] {
        assert!(!is_alias(name.as_ref()), "{name}");
    }
}

// L101, L102, L104
#[test]
fn first_word_selects_the_verb() {
    assert_eq!(split_verb(&["get-token", "--x"], false), (LoginVerb::Get(Form::Compatible), &["--x"][..]));
    assert_eq!(split_verb(&["--x"], false), (LoginVerb::Get(Form::Own), &["--x"][..]));
    assert_eq!(split_verb::<&str>(&[], true).0, LoginVerb::StandAlone);
    assert_eq!(split_verb(&["--context=x"], true).0, LoginVerb::StandAlone);
    assert_eq!(split_verb(&["clean"], true).0, LoginVerb::Clean);
    assert_eq!(split_verb(&["version"], true).0, LoginVerb::Version);
    assert_eq!(split_verb(&["setup"], false).0, LoginVerb::Setup);
}

// L105
#[test]
fn missing_issuer_and_client_are_named() {
    for (words, flag) in [
        (&["--oidc-client-id=c"][..], "--oidc-issuer-url"),
        (&["--oidc-issuer-url=https://i", "--oidc-client-id="][..], "--oidc-client-id"),
    ] {
        let flags = parse(words).unwrap();
        let error = login_request(Form::Own, &flags, None, ExtensionDefaults::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("missing {flag}"));
    }
}

// L110
#[test]
fn booleans_never_take_the_next_word() {
    for (word, value) in [
        ("--force-refresh", true),
        ("--force-refresh=1", true),
        ("--force-refresh=T", true),
        ("--force-refresh=FALSE", false),
        ("--force-refresh=f", false),
    ] {
        assert_eq!(request(&[word]).unwrap().force_refresh, value, "{word}");
    }
    assert!(usage_error(&["--force-refresh", "true"]).contains("unexpected argument"));
    for word in ["--force-refresh=yes", "--force-refresh="] {
        assert!(usage_error(&[word]).contains("expected true or false"), "{word}");
    }
}

#[test]
fn values_follow_pflag() {
    let found = request(&[
        "--oidc-extra-scope",
        "a,b",
        "--oidc-extra-scope=\"c,d\"",
        "--certificate-authority=/x,y",
        "--oidc-auth-request-extra-params=p=1=2,q=3",
        "--oidc-auth-request-extra-params=q=4",
        "-v1",
        "--listen-address=127.0.0.1:1,127.0.0.1:2",
        "--oidc-client-id=last",
    ])
    .unwrap();
    assert_eq!(found.extra_scopes, ["a", "b", "c,d"]);
    assert_eq!(found.connection.authorities, [Path::new("/x,y")]);
    let extra: Vec<_> = found.parameters.extra.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(extra, [("p", "1=2"), ("q", "4")]);
    assert_eq!((found.verbosity, found.client_id.as_str()), (1, "last"));
    assert_eq!(found.browser.listen, ["127.0.0.1:1", "127.0.0.1:2"]);
    for level in [&["-v", "3"][..], &["-v=3"], &["--v=3"], &["--v", "3"]] {
        assert_eq!(request(level).unwrap().verbosity, 3, "{level:?}");
    }
    assert!(usage_error(&["--oidc-extra-scope=\"a"]).contains("comma-separated"));
    assert!(usage_error(&["--oidc-request-header=x"]).contains("NAME=VALUE"));
    assert!(usage_error(&["--username"]).contains("missing value"));
    assert!(usage_error(&["--no-such"]).contains("unknown flag: --no-such"));
    assert!(usage_error(&["-z"]).contains("unknown shorthand"));
    assert!(usage_error(&["--", "x"]).contains("unexpected argument"));
}

// L112: `crates/navicert/tests/interop_login.rs` compares the list with kubelogin's own help.
#[test]
fn every_flag_of_kubelogin_is_known_with_its_type() {
    let lines = include_str!("kubelogin-flags.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let (name, kind) = line.split_once(' ').unwrap();
        let expected = match kind {
            "bool" => FlagKind::Bool,
            "int" | "uint" | "Level" => FlagKind::Integer,
            "strings" => FlagKind::List,
            "stringArray" => FlagKind::Array,
            "stringToString" => FlagKind::Map,
            _ => FlagKind::Text,
        };
        let flag = FLAGS.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("unknown: --{name}"));
        assert_eq!((flag.kind, flag.origin == flags::Origin::Navicert), (expected, false), "--{name}");
        count += 1;
    }
    assert_eq!(count, 42);
}

// L112
#[test]
fn every_flag_is_accepted_with_a_value_of_its_type() {
    for flag in FLAGS {
        let value = match flag.kind {
            FlagKind::Bool => "true",
            FlagKind::Integer => "1",
            FlagKind::Map => "a=b",
            FlagKind::Text | FlagKind::OptionalText | FlagKind::List | FlagKind::Array => "a",
        };
        assert!(parse(&[format!("--{}={value}", flag.name)]).is_ok(), "{}", flag.name);
        assert_eq!(FLAGS.iter().filter(|other| other.name == flag.name).count(), 1, "{}", flag.name);
        assert!(flag.help.is_empty() == (flag.origin == flags::Origin::Ignored), "{}", flag.name);
    }
    for ignored in ["--logtostderr", "--log_dir=/x", "--stderrthreshold=2", "--tls-renegotiation-once"] {
        assert_eq!(request(&[ignored]).unwrap(), request(&[]).unwrap(), "{ignored}");
        assert_eq!(parse(&[ignored, "--v=1"]).unwrap().without_effect().count(), 1, "{ignored}");
    }
}

// L111
#[test]
fn tilde_is_the_home_folder_in_paths_only() {
    let found = request(&[
        "--token-cache-dir=~/cache",
        "--certificate-authority=~/ca.pem",
        "--oidc-client-secret-file=~/secret",
        "--browser-command=~/open",
        "--local-server-cert=~",
        "--local-server-key=~other/key",
    ])
    .unwrap();
    assert_eq!(found.cache_dir.as_deref(), Some(Path::new("/home/ann/cache")));
    assert_eq!(found.connection.authorities, [Path::new("/home/ann/ca.pem")]);
    assert_eq!(found.client.secret, Some(SecretSource::File("/home/ann/secret".into())));
    assert_eq!(found.browser.command.as_deref(), Some("~/open"));
    assert_eq!(found.browser.certificate, Some(("/home/ann".into(), "~other/key".into())));
}

// L607, L705
#[test]
fn reserved_headers_and_parameters_are_rejected() {
    for name in ["Host", "authorization", "Cookie", "Content-Type", "transfer-encoding"] {
        assert!(usage_error(&[&format!("--oidc-request-header={name}=x")]).contains("may not set"), "{name}");
    }
    for bad in ["a b=x", "x=a\nb"] {
        assert!(usage_error(&[&format!("--oidc-request-header={bad}")]).contains("not a header"), "{bad:?}");
    }
    for name in ["state", "nonce", "redirect_uri", "request", "client_secret", "scope"] {
        let word = format!("--oidc-auth-request-extra-params={name}=x");
        assert!(usage_error(&[&word]).contains("may not set"), "{name}");
    }
    let word = "--oidc-auth-request-extra-params=response_mode=fragment";
    assert!(usage_error(&[word]).contains("response_mode"));
    assert!(request(&["--oidc-auth-request-extra-params=response_mode=form_post"]).is_ok());
}

#[test]
fn values_become_types() {
    let found = request(&[
        "--oidc-use-access-token",
        "--grant-type=device-code",
        "--oidc-use-pkce",
        "--min-validity=90s",
        "--subject-token=env:CI_TOKEN",
        "--authentication-timeout-sec=7",
    ])
    .unwrap();
    assert_eq!((found.token_kind, found.grant), (TokenKind::Access, GrantType::DeviceCode));
    assert_eq!((found.browser.pkce, found.min_validity), (PkceMethod::S256, Duration::from_secs(90)));
    assert_eq!(found.exchange.subject, Some(TokenSource::Variable("CI_TOKEN".to_owned())));
    assert_eq!(found.timeout, Some(Duration::from_secs(7)));
    for (words, part) in [
        (&["--grant-type=implicit"][..], "expected auto, authcode"),
        (&["--min-validity=soon"], "duration"),
        (&["--subject-token=eyJcanary"], "expected file:PATH"),
        (&["--client-certificate=c"], "needs --client-key"),
        (&["--grant-type=token-exchange"], "missing --subject-token"),
        (&["--grant-type=client-credentials"], "client-credentials needs"),
        (&["--actor-token=env:A"], "belong together"),
        (&["--open-url-after-authentication=javascript:x"], "http or https"),
        (&["--insecure-skip-tls-verify", "--certificate-authority=x"], "contradicts"),
    ] {
        let text = usage_error(words);
        assert!(text.contains(part) && !text.contains("canary"), "{words:?}: {text}");
    }
}

// The statements of these flags are listed as untested: docs/spec/untested.toml.
#[test]
fn flag_that_is_not_built_is_refused_with_what_to_do_instead() {
    for (word, part) in [
        ("--force-keyring", "--token-cache-storage=keyring"),
        ("--write", "--write is a flag of `navicert login setup`"),
        ("--kubeconfig=x", "give --oidc-issuer-url"),
        ("--from-kubelogin", "is a flag of `navicert login setup`"),
        ("--all", "navicert logout"),
        ("--browser", "navicert logout"),
    ] {
        assert!(usage_error(&[word]).contains(part), "{word}: {}", usage_error(&[word]));
    }
    let name = |flag: &Flag| flag.name;
    assert!(FLAGS.iter().map(name).all(|name| flags::instead_of(name).is_none()));
}

// L1112, L1113
#[test]
fn setup_has_flags_of_its_own() {
    let words =
        ["--write", "--from-kubelogin", "--user", "ann", "--from-auth-provider=bob", "--oidc-client-id=c"];
    let flags = parse_with(&words, SETUP_FLAGS).unwrap();
    assert!(flags.is_set("write") && !flags.is_set("force"));
    assert_eq!((flags.text("from-kubelogin"), flags.text("from-auth-provider")), (Some(""), Some("bob")));
    assert_eq!((flags.text("user"), flags.text("oidc-client-id")), (Some("ann"), Some("c")));
    for flag in SETUP_FLAGS {
        assert!(flags::find(flag.name, &[]).is_none(), "{} is in both tables", flag.name);
    }
}

// L420
#[test]
fn storage_is_disk_unless_another_one_is_named() {
    assert_eq!(request(&[]).unwrap().storage, Storage::Disk);
    assert_eq!(request(&["--token-cache-storage=keyring"]).unwrap().storage, Storage::Keyring);
}

// L206
#[test]
fn cluster_extension_gives_defaults_for_absent_flags() {
    let read =
        |text: &str| ExtensionDefaults::read(Some(&parse_tree(text.as_bytes(), Syntax::Yaml).unwrap()));
    let text = "{apiVersion: navicert/v1alpha1, kind: Login, issuerURL: 'https://e', clientID: e, scopes: [s], audience: a, token: access}";
    let none: [&str; 0] = [];
    let found = login_request(Form::Own, &parse(&none).unwrap(), None, read(text).unwrap()).unwrap();
    assert_eq!((found.issuer.as_str(), found.client_id.as_str()), ("https://e", "e"));
    assert_eq!(
        (found.extra_scopes, found.parameters.audiences),
        (vec!["s".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(found.token_kind, TokenKind::Access);
    let flags = parse(&["--oidc-client-id=mine", "--token-kind=id"]).unwrap();
    let found = login_request(Form::Own, &flags, None, read(text).unwrap()).unwrap();
    assert_eq!((found.client_id.as_str(), found.token_kind), ("mine", TokenKind::Id));
    for other in ["{apiVersion: navicert/v2, kind: Login, issuerURL: 5}", "[1]", "audience: x"] {
        assert_eq!(read(other).unwrap(), ExtensionDefaults::default(), "{other}");
    }
    let error =
        read("{apiVersion: navicert/v1alpha1, kind: Login, clientID: [canary]}").unwrap_err().to_string();
    assert!(error.contains("`clientID`") && !error.contains("canary"), "{error}");
}
