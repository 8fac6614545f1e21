use navicert_testkit::pki::ca::Ca;
use proptest::prelude::*;

use super::*;
use crate::config::load;

const FLAGS: [(&str, &str); 9] = [
    ("oidc-issuer-url", "https://login.example.com/realms/a"),
    ("oidc-client-id", "kubernetes"),
    ("oidc-username-claim", "preferred_username"),
    ("oidc-username-prefix", "oidc:"),
    ("oidc-groups-claim", "groups"),
    ("oidc-groups-prefix", "yes"),
    ("oidc-required-claim", "hd = example.com"),
    ("oidc-required-claim", "aal=a=b, c"),
    ("oidc-signing-algs", "RS256,ES256"),
];

/// The same flags in every supported format (S206).
fn forms() -> [(FlagSource, String); 6] {
    let quoted = |text: &str| format!("{text:?}");
    let line: String = FLAGS.iter().map(|(name, value)| format!(" --{name}={}", quoted(value))).collect();
    let spaced: String =
        FLAGS.iter().map(|(name, value)| format!(" \\\n  --{name} {}", quoted(value))).collect();
    let pod: String = FLAGS
        .iter()
        .map(|(name, value)| format!("    - {}\n", quoted(&format!("--{name}={value}"))))
        .collect();
    // A map has each key once.
    let once = FLAGS.iter().filter(|(_, value)| !value.starts_with("aal"));
    let map: String = once.map(|(name, value)| format!("    {name}: {}\n", quoted(value))).collect();
    let list: String = FLAGS
        .iter()
        .map(|(name, value)| format!("  - name: {name}\n    value: {}\n", quoted(value)))
        .collect();
    let rancher: String =
        FLAGS.iter().map(|(name, value)| format!("- {}\n", quoted(&format!("{name}={value}")))).collect();
    [
        (FlagSource::CommandLine, format!("kube-apiserver --secure-port=6443{line} --anonymous-auth=false")),
        (
            FlagSource::CommandLine,
            format!("ExecStart=/usr/bin/kube-apiserver --anonymous-auth=false{spaced}\n"),
        ),
        (
            FlagSource::StaticPod,
            format!(
                "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: kube-apiserver\n    command:\n    - kube-apiserver\n    - --anonymous-auth=false\n{pod}"
            ),
        ),
        (
            FlagSource::KubeadmMap,
            format!(
                "apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\n---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\napiServer:\n  extraArgs:\n    anonymous-auth: \"false\"\n{map}"
            ),
        ),
        (
            FlagSource::KubeadmList,
            format!(
                "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer:\n  extraArgs:\n  - name: anonymous-auth\n    value: \"false\"\n{list}"
            ),
        ),
        (
            FlagSource::Rancher,
            format!(
                "write-kubeconfig-mode: \"0644\"\nkube-apiserver-arg:\n- anonymous-auth=false\n{rancher}"
            ),
        ),
    ]
}

// S205: the written file, decoded strictly and validated, equals the converted flags.
fn round_trip(flags: &OidcFlags, options: &MigrateOptions<'_>) -> Migration {
    let migration = migrate(flags, options).unwrap();
    let loaded = load(migration.yaml.as_bytes(), &AuthnProfile::KUBE);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{}", migration.yaml));
    assert_eq!(loaded.configuration, migration.configuration, "{}", migration.yaml);
    migration
}

// S200–S206
#[test]
fn every_format_gives_the_same_configuration() {
    for (form, text) in forms() {
        let (found, flags) = find_flags(&text).unwrap();
        assert_eq!(found, form);
        assert_eq!(flags.anonymous, Some(false), "{form}");
        for v1beta1 in [false, true] {
            let migration =
                round_trip(&flags, &MigrateOptions { v1beta1, anonymous: true, ..MigrateOptions::default() });
            let [authenticator] = migration.configuration.jwt.as_slice() else { panic!("{form}") };
            assert_eq!(authenticator.issuer.url, "https://login.example.com/realms/a");
            assert_eq!(authenticator.issuer.audiences, ["kubernetes"]);
            assert_eq!(authenticator.claim_mappings.username.prefix.as_deref(), Some("oidc:"));
            assert_eq!(authenticator.claim_mappings.groups.prefix.as_deref(), Some("yes"));
            let rules: Vec<(&str, &str)> = authenticator
                .claim_validation_rules
                .iter()
                .map(|rule| (rule.claim.as_str(), rule.required_value.as_str()))
                .collect();
            let both = [("aal", "a=b, c"), ("hd", "example.com")];
            assert_eq!(rules, if form == FlagSource::KubeadmMap { &both[1..] } else { &both[..] }, "{form}");
            assert_eq!(migration.configuration.anonymous.as_ref().map(|one| one.enabled), Some(false));
        }
    }
}

fn flags(pairs: &[(&str, &str)]) -> OidcFlags {
    let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    OidcFlags { given, ..OidcFlags::default() }
}

fn with(more: &[(&str, &str)]) -> OidcFlags {
    let base = [("oidc-issuer-url", "https://i"), ("oidc-client-id", "c")];
    flags(&base.iter().chain(more).copied().collect::<Vec<_>>())
}

// S201, S202
#[test]
fn prefixes_match_kube_apiserver() {
    let prefix = |more: &[(&str, &str)]| {
        let migration = round_trip(&with(more), &MigrateOptions::default());
        let mappings = migration.configuration.jwt[0].claim_mappings.clone();
        (mappings.username.prefix.unwrap(), mappings.groups.prefix)
    };
    assert_eq!(prefix(&[]), ("https://i#".to_owned(), None));
    assert_eq!(prefix(&[("oidc-username-prefix", "-")]).0, "");
    assert_eq!(prefix(&[("oidc-username-claim", "email")]).0, "");
    assert_eq!(prefix(&[("oidc-username-claim", "email"), ("oidc-username-prefix", "o:")]).0, "o:");
    assert_eq!(prefix(&[("oidc-groups-claim", "g")]).1.as_deref(), Some(""));
    assert_eq!(prefix(&[("oidc-groups-claim", "g"), ("oidc-groups-prefix", "-")]).1.as_deref(), Some("-"));
    assert_eq!(prefix(&[("oidc-groups-prefix", "o:")]).1, None);
}

// S198, S199, S200, S59, S204
#[test]
fn rejects_flags_that_kube_apiserver_does_not_start_with() {
    let refused = |flags: &OidcFlags| migrate(flags, &MigrateOptions::default()).unwrap_err().to_string();
    assert_eq!(refused(&OidcFlags::default()), "missing `--oidc-*` flags");
    let together =
        "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
    assert_eq!(refused(&flags(&[("oidc-issuer-url", "https://i")])), together);
    assert_eq!(refused(&flags(&[("oidc-client-id", "c"), ("oidc-issuer-url", "")])), together);
    assert_eq!(refused(&flags(&[("oidc-groups-claim", "g")])), together);
    let both = OidcFlags { has_file: true, ..with(&[]) };
    assert_eq!(refused(&both), "authentication-config file and oidc-* flags are mutually exclusive");
    assert_eq!(
        refused(&with(&[("oidc-signing-algs", "RS256,HS256")])),
        "--oidc-signing-algs: oidc: unsupported signing alg: \"HS256\""
    );
    assert!(refused(&with(&[("oidc-required-claim", "x")])).contains("malformed pair"));
    assert!(refused(&with(&[("oidc-ca-file", "/etc/ca.pem")])).contains("`/etc/ca.pem`"));
    let http = refused(&flags(&[("oidc-issuer-url", "http://i"), ("oidc-client-id", "c")]));
    assert!(
        http.starts_with("invalid authentication configuration: jwt[0].issuer.url: Invalid value"),
        "{http}"
    );
}

// S203, S207
#[test]
fn warnings_name_what_changes() {
    let migrated = |flags: &OidcFlags| round_trip(flags, &MigrateOptions::default());
    let usual = migrated(&with(&[]));
    assert!(usual.warnings[0].text.starts_with("the flags allow RS256 only"), "{:?}", usual.warnings);
    assert!(usual.navicert_config.unwrap().contains("allowedAlgorithms: [RS256]"));
    assert_eq!(usual.obsolete, ["--oidc-client-id", "--oidc-issuer-url"]);
    let all = "RS256,RS384,RS512,ES256,ES384,ES512,PS256,PS384,PS512";
    let wide = migrated(&with(&[("oidc-signing-algs", all)]));
    assert!(wide.navicert_config.is_none());
    assert!(wide.warnings[0].text.contains("reloaded"), "{:?}", wide.warnings);
    let repeated = migrated(&with(&[("oidc-required-claim", "a=1"), ("oidc-required-claim", "a=2")]));
    assert!(repeated.warnings.iter().any(|warning| warning.text.contains("last value counts")));
    assert_eq!(repeated.configuration.jwt[0].claim_validation_rules[0].required_value, "2");
    let prefix = migrated(&with(&[("oidc-groups-prefix", "-")]));
    let about_flags = prefix.warnings.iter().filter(|warning| warning.is_about_flags);
    let texts: Vec<&str> = about_flags.map(|warning| warning.text.as_str()).collect();
    assert!(
        matches!(texts.as_slice(), [first, second]
        if first.contains("without --oidc-groups-claim") && second.contains("literal `-`")),
        "{texts:?}"
    );
}

// S204: a required value is a string, `email_verified` is a boolean.
#[test]
fn required_boolean_becomes_a_rule_that_standard_tokens_pass() {
    let given = with(&[("oidc-required-claim", "email_verified=true"), ("oidc-required-claim", "hd=true")]);
    let options = MigrateOptions { boolean_rules: true, ..MigrateOptions::default() };
    let migration = round_trip(&given, &options);
    let rules = &migration.configuration.jwt[0].claim_validation_rules;
    assert_eq!(rules[0].expression, "claims.email_verified == true || claims.email_verified == \"true\"");
    assert_eq!((rules[1].claim.as_str(), rules[1].required_value.as_str()), ("hd", "true"));
    assert!(migration.warnings.iter().any(|warning| warning.text.contains("email_verified=true")));
    // With flags a server decides as kube-apiserver does.
    let exact = round_trip(&given, &MigrateOptions::default());
    assert_eq!(exact.configuration.jwt[0].claim_validation_rules[0].required_value, "true");
}

// S205: certificates of any form are preserved.
#[test]
fn certificates_are_preserved_byte_by_byte() {
    let pem = Ca::new("migrate").pem();
    let bare = pem.trim_end();
    for content in [
        format!("{bare}\n"),
        bare.to_owned(),
        format!("{bare}\n\n\n"),
        format!("# root\n\n{bare}\n{bare}\n"),
        format!("{}\r\n", bare.replace('\n', "\r\n")),
        format!(" \n{bare}\n"),
    ] {
        let options = MigrateOptions { certificate_authority: Some(&content), ..MigrateOptions::default() };
        let migration = round_trip(&with(&[("oidc-ca-file", "/etc/ca.pem")]), &options);
        assert_eq!(migration.configuration.jwt[0].issuer.certificate_authority, content);
    }
}

proptest! {
    // S205, S285
    #[test]
    fn any_value_of_any_flag_comes_back(
        client in "\\PC{1,12}",
        claim in "[ -~\u{e9}\u{2028}]{0,12}",
        prefix in "\\PC{0,12}",
        required in "[a-z]{1,3}=[ -~\u{85}\u{a0}]{0,9}",
    ) {
        let given = [
            ("oidc-client-id", client.as_str()),
            ("oidc-issuer-url", "https://i"),
            ("oidc-username-claim", claim.as_str()),
            ("oidc-groups-claim", claim.as_str()),
            ("oidc-groups-prefix", prefix.as_str()),
            ("oidc-username-prefix", prefix.as_str()),
            ("oidc-required-claim", required.as_str()),
        ];
        prop_assume!(!claim.is_empty());
        round_trip(&flags(&given), &MigrateOptions::default());
    }

    #[test]
    fn no_text_makes_the_search_for_flags_panic(text in "(\\PC|[-= \n:'\"\\\\]|oidc-client-id|kind: Pod){0,60}") {
        let _ = find_flags(&text).and_then(|(_, flags)| migrate(&flags, &MigrateOptions::default()));
    }
}
