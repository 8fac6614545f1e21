//! Decoding, merging, validating and linting configurations (I16–I60, I265, I270).

use super::*;

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n";

fn file(name: &str, text: impl Into<Vec<u8>>) -> ConfigFile {
    ConfigFile { path: PathBuf::from(name), text: text.into() }
}

fn provider(name: &str, pattern: &str) -> String {
    format!(
        "- name: {name}\n  matchImages: ['{pattern}']\n  defaultCacheDuration: 1m\n  \
         apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
    )
}

fn problems(text: &str, profile: Profile) -> Vec<String> {
    let errors = ImageConfig::decode(&[file("c.yaml", text)], profile).unwrap_err();
    errors.problems().iter().map(ToString::to_string).collect()
}

fn rules(text: &str) -> Vec<&'static str> {
    lint(&[file("c.yaml", text)], None).iter().map(|finding| finding.rule).collect()
}

#[test]
fn hash_equals_the_kubelets() {
    // I19, I270
    let text = "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders:\n- name: p\n  \
                apiVersion: credentialprovider.kubelet.k8s.io/v1\n  matchImages: [a.io]\n  defaultCacheDuration: 1m\n";
    let config = ImageConfig::decode(&[file("c", text)], Profile::Kube).unwrap();
    assert_eq!(config.hash(), "sha256:9668b891c0d56f460ed62c21ad1d8779dbd17be63e9a72f5dd2d3d3400e73c26");
}

#[test]
fn merges_files_in_order_and_rejects_duplicate_names() {
    // I16, I17, I18
    let one = file("1.yaml", format!("{HEAD}{}", provider("b", "b.io")));
    let empty =
        file("2.yaml", HEAD.replace("providers:\n", "providers: []\n").replace("/v1\n", "/v1alpha1\n"));
    let two = file("3.yaml", format!("{HEAD}{}{}", provider("a", "a.io"), provider("c", "c.io")));
    let config = ImageConfig::decode(&[one.clone(), empty, two.clone()], Profile::Kube).unwrap();
    assert_eq!(
        config.providers().iter().map(|provider| &*provider.name).collect::<Vec<_>>(),
        ["b", "a", "c"]
    );
    let again = ConfigFile { path: "4.yaml".into(), ..one.clone() };
    let errors = ImageConfig::decode(&[one, two, again], Profile::Kube).unwrap_err();
    assert_eq!(errors.problems().len(), 1);
    assert_eq!(errors.problems()[0].stage, ConfigStage::Merge);
    assert!(
        errors.to_string().contains("4.yaml:4:9: providers[0](b).name: duplicate provider name"),
        "{errors}"
    );
}

#[test]
fn reports_all_errors_with_provider_and_line() {
    // I35, I36
    let text = format!(
        "{HEAD}- name: a/b\n  matchImages: [ok.io, 'a b.io', 'c:x']\n  apiVersion: v1\n- name: second\n  matchImages: []\n"
    );
    assert_eq!(
        problems(&text, Profile::Kube),
        [
            "c.yaml:4:9: providers[0](a/b).name: provider name must not contain `/`",
            "c.yaml:6:15: providers[0](a/b).apiVersion: must be one of `credentialprovider.kubelet.k8s.io/v1`, `credentialprovider.kubelet.k8s.io/v1alpha1`, `credentialprovider.kubelet.k8s.io/v1beta1`",
            "c.yaml:5:24: providers[0](a/b).matchImages[1]: ` ` is not allowed in a host name",
            "c.yaml:5:34: providers[0](a/b).matchImages[2]: invalid port `:x`: expected digits after the colon",
            "c.yaml:4:3: providers[0](a/b).defaultCacheDuration: missing; set it to a duration such as `12h`",
            "c.yaml:7:3: providers[1](second).apiVersion: missing; set it to `credentialprovider.kubelet.k8s.io/v1`",
            "c.yaml:8:16: providers[1](second).matchImages: at least one pattern is required",
            "c.yaml:7:3: providers[1](second).defaultCacheDuration: missing; set it to a duration such as `12h`",
        ]
    );
}

#[test]
fn reports_every_file_that_does_not_decode() {
    // I16, with every error instead of the first
    let errors = ImageConfig::decode(&[file("1", "kind: x"), file("2", "{"), file("3", "")], Profile::Kube)
        .unwrap_err();
    let files: Vec<&Path> = errors.problems().iter().map(|problem| &*problem.file).collect();
    assert_eq!(files, [Path::new("1"), Path::new("2"), Path::new("3")]);
}

#[test]
fn errors_do_not_repeat_file_contents() {
    // I26
    let text =
        "apiVersion: kubelet.config.k8s.io/v1\nproviders:\n- name: p\n  env: [{name: A, value: canary}]\n";
    assert!(!problems(text, Profile::Kube).join(" ").contains("canary"));
    let text = format!("{HEAD}- name: p\n  env:\n  - name: A\n    value: [canary]\n");
    assert!(!problems(&text, Profile::Kube).join(" ").contains("canary"));
}

#[test]
fn second_document_is_ignored_in_kube_and_rejected_in_hardened_profile() {
    // I22
    let text = format!("---\n{HEAD}{}---\njunk: true\n", provider("p", "a.io"));
    assert!(ImageConfig::decode(&[file("c.yaml", &*text)], Profile::Kube).is_ok());
    assert!(problems(&text, Profile::Hardened)[0].starts_with("c.yaml:9:1: a second YAML document"));
    let json = format!("# x\n---\n{HEAD}{}", provider("p", "a.io"));
    assert!(ImageConfig::decode(&[file("c.yaml", &*json)], Profile::Hardened).is_ok());
}

#[test]
fn empty_name_is_accepted_in_kube_and_rejected_in_hardened_profile() {
    // I41
    let text = format!("{HEAD}{}", provider("''", "a.io"));
    assert!(ImageConfig::decode(&[file("c.yaml", &*text)], Profile::Kube).is_ok());
    assert_eq!(problems(&text, Profile::Hardened).len(), 1);
    let found = lint(&[file("c.yaml", text)], None);
    assert!(found[0].kubelet_accepts && found[0].severity == LintSeverity::Error);
}

#[test]
fn lint_reports_suspicious_patterns() {
    // I78, I79, I241, I265
    for (pattern, expected) in [
        ("registry.io", None),
        ("*.dkr.ecr.*.amazonaws.com", None),
        ("registry.io:5000/team/", None),
        ("localhost", None),
        ("registry.io/*", Some("glob-in-path")),
        ("*.registry.io/*", Some("glob-in-path")),
        ("https://registry.io", Some("scheme")),
        ("index.docker.io", Some("never-matches")),
        ("registry", Some("never-matches")),
        ("registry.io.", Some("never-matches")),
        ("", Some("never-matches")),
        ("registry.io/Foo", Some("never-matches")),
        ("registry.io/foo:latest", Some("never-matches")),
        ("registry.io//foo", Some("never-matches")),
        ("Registry.io", Some("upper-case-host")),
        ("registry.io:443", Some("port-443")),
        ("*", Some("broad-pattern")),
        ("*.*", Some("broad-pattern")),
        ("[::1]", Some("ipv6-without-port")),
        ("[::1]:5000", None),
        ("user:pw@registry.io", Some("user-info")),
        ("registry.io?x", Some("query")),
    ] {
        let text = format!("{HEAD}{}", provider("p", pattern));
        assert_eq!(rules(&text), expected.into_iter().collect::<Vec<_>>(), "{pattern}");
    }
}

#[test]
fn lint_reports_other_findings() {
    // I265
    let text = format!(
        "{HEAD}- name: p\n  matchImages: [a.io, a.io]\n  defaultCacheDuration: 0s\n  \
         apiVersion: credentialprovider.kubelet.k8s.io/v1beta1\n  \
         env: [{{name: MY_TOKEN, value: canary}}, {{name: MY_TOKEN, value: ''}}, {{name: ''}}, {{name: TOKEN_FILE, value: x}}]\n\
         ---\njunk: true\n"
    );
    let expected = [
        "decode",
        "duplicate-pattern",
        "cache-duration-zero",
        "old-wire-version",
        "secret-in-environment",
        "duplicate-variable",
        "variable-name",
    ];
    assert_eq!(rules(&text), expected);
    let found = lint(&[file("c.yaml", text)], Some(&|name| Err(format!("`/bin-dir/{name}` does not exist"))));
    assert_eq!(found.last().unwrap().rule, "executable");
    assert!(!found.last().unwrap().kubelet_accepts);
    assert!(!found.iter().map(ToString::to_string).collect::<String>().contains("canary"));
}

/// A valid provider with these fields changed or added.
fn changed(lines: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("name", "p"),
        ("matchImages", "[a.io]"),
        ("defaultCacheDuration", "1m"),
        ("apiVersion", "credentialprovider.kubelet.k8s.io/v1"),
    ];
    for (name, value) in lines {
        match fields.iter_mut().find(|(found, _)| found == name) {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        }
    }
    let fields = fields.iter().filter(|(_, value)| *value != "absent");
    format!(
        "{HEAD}- {{{}}}\n",
        fields.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn validation_errors_have_the_kubelets_type_and_field() {
    let token = |more: &str| {
        format!("{{serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true{more}}}")
    };
    let token_rows: Vec<(&str, String, &str)> = vec![
        (
            "I50",
            token("").replace("serviceAccountTokenAudience: a, ", ""),
            "FieldValueRequired serviceAccountTokenAudience",
        ),
        (
            "I51",
            token("").replace(", requireServiceAccount: true", ""),
            "FieldValueRequired requireServiceAccount",
        ),
        (
            "I53",
            token(", requiredServiceAccountAnnotationKeys: [a]").replace("true", "false"),
            "FieldValueForbidden requiredServiceAccountAnnotationKeys",
        ),
        (
            "I54",
            token(", requiredServiceAccountAnnotationKeys: ['a b']"),
            "FieldValueInvalid requiredServiceAccountAnnotationKeys",
        ),
        (
            "I54",
            token(", optionalServiceAccountAnnotationKeys: [a/b/c]"),
            "FieldValueInvalid optionalServiceAccountAnnotationKeys",
        ),
        ("I54, I59", token(", optionalServiceAccountAnnotationKeys: [Example.com/Role]"), ""),
        (
            "I55",
            token(", optionalServiceAccountAnnotationKeys: [a, a]"),
            "FieldValueDuplicate optionalServiceAccountAnnotationKeys",
        ),
        ("I55", token(", optionalServiceAccountAnnotationKeys: [a, A]"), ""),
        (
            "I56",
            token(", optionalServiceAccountAnnotationKeys: [a], requiredServiceAccountAnnotationKeys: [a]"),
            "FieldValueInvalid",
        ),
        ("I57", token("").replace("cacheType: Token, ", ""), "FieldValueRequired cacheType"),
        ("I58", token("").replace("Token,", "Both,"), "FieldValueNotSupported cacheType"),
        ("I29", "null".to_owned(), ""),
    ];
    let rows: Vec<(&str, String, String)> = [
        ("I38", &[("name", "a/b")][..], "FieldValueInvalid providers.name"),
        ("I39", &[("name", "a b")], "FieldValueInvalid providers.name"),
        ("I40", &[("name", ".")], "FieldValueInvalid providers.name"),
        ("I40", &[("name", "..")], "FieldValueInvalid providers.name"),
        ("I41", &[("name", "''")], ""),
        ("I41", &[("name", "absent")], ""),
        ("I41", &[("name", "\"a\\tb\\\\\"")], ""),
        ("I43", &[("apiVersion", "absent")], "FieldValueRequired providers.apiVersion"),
        ("I44", &[("apiVersion", "v1")], "FieldValueNotSupported providers.apiVersion"),
        ("I34", &[("apiVersion", "credentialprovider.kubelet.k8s.io/v1alpha1")], ""),
        ("I34", &[("apiVersion", "credentialprovider.kubelet.k8s.io/v1beta1")], ""),
        ("I45", &[("matchImages", "[]")], "FieldValueRequired providers.matchImages"),
        ("I46", &[("matchImages", "['a:x']")], "FieldValueInvalid providers.matchImages"),
        ("I47", &[("defaultCacheDuration", "absent")], "FieldValueRequired providers.defaultCacheDuration"),
        ("I29", &[("defaultCacheDuration", "null")], "FieldValueRequired providers.defaultCacheDuration"),
        ("I48", &[("defaultCacheDuration", "-1s")], "FieldValueInvalid providers.defaultCacheDuration"),
        (
            "I52",
            &[
                ("apiVersion", "credentialprovider.kubelet.k8s.io/v1beta1"),
                (
                    "tokenAttributes",
                    "{serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true}",
                ),
            ],
            "FieldValueForbidden providers.tokenAttributes",
        ),
        ("I60", &[("env", "[{name: A}, {name: A}, {name: ''}]"), ("args", "['', '$HOME']")], ""),
        ("I60", &[("matchImages", "[registry.io/*, 'https://a.io', '']")], ""),
    ]
    .into_iter()
    .map(|(rule, lines, expected)| (rule, changed(lines), expected.to_owned()))
    .chain(token_rows.into_iter().map(|(rule, attributes, expected)| {
        let expected = match expected.split_once(' ') {
            Some((class, field)) => format!("{class} providers.tokenAttributes.{field}"),
            None if expected.is_empty() => String::new(),
            None => format!("{expected} providers.tokenAttributes"),
        };
        (rule, changed(&[("tokenAttributes", &attributes)]), expected)
    }))
    .chain([("I37", HEAD.to_owned(), "FieldValueRequired providers".to_owned())])
    .collect();
    for (rule, text, expected) in rows {
        let found = match ImageConfig::decode(&[file("c.yaml", &*text)], Profile::Kube) {
            Ok(_) => Vec::new(),
            Err(errors) => errors
                .problems()
                .iter()
                .map(|problem| {
                    assert_eq!(problem.stage, ConfigStage::Validate, "{rule}: {problem}");
                    format!("{} {}", problem.error_type.unwrap().as_str(), problem.field)
                })
                .collect(),
        };
        assert_eq!(found.join(", "), expected, "{rule}: {text}");
    }
}

#[test]
fn decoding_errors_come_before_validation_errors() {
    let v1 = changed(&[]);
    let duration = |text: &str| changed(&[("defaultCacheDuration", text)]);
    for (rule, text, decodes) in [
        ("I20", v1.clone(), true),
        ("I20, I28", v1.replace("kubelet.config.k8s.io/v1\n", "kubelet.config.k8s.io/v1alpha1\n"), true),
        ("I20", v1.replace("kubelet.config.k8s.io/v1\n", "kubelet.config.k8s.io/v1beta1\n"), true),
        ("I25", v1.replace("kubelet.config.k8s.io/v1\n", "kubelet.config.k8s.io/v2\n"), false),
        ("I25", v1.replace("kind: CredentialProviderConfig\n", ""), false),
        ("I25", v1.replace("apiVersion: kubelet.config.k8s.io/v1\n", ""), false),
        ("I25", v1.replace("CredentialProviderConfig", "KubeletConfiguration"), false),
        ("I21", format!("\u{feff}{}", v1.replace('\n', "\r\n")), true),
        ("I21", format!("---\n{v1}"), true),
        ("I23", changed(&[("unknownField", "1")]), false),
        ("I23", v1.replace("{name: p,", "{name: p, name: q,"), false),
        ("I24", v1.replace("matchImages", "MatchImages"), false),
        (
            "I27",
            changed(&[("tokenAttributes", "{cacheType: Token}")])
                .replace("kubelet.config.k8s.io/v1\n", "kubelet.config.k8s.io/v1beta1\n"),
            false,
        ),
        ("I30", duration("60"), false),
        ("I30", duration("0"), false),
        ("I31", duration("'0'"), true),
        ("I31", duration("1.5h"), true),
        ("I31", duration(".5s"), true),
        ("I31", duration("1h1h"), true),
        ("I31", duration("1d"), false),
        ("I31", duration("PT1H"), false),
        ("I31", duration("'1m 1s'"), false),
        ("I31", duration("1M"), false),
        ("I31", duration("' 1s'"), false),
        ("I31", duration("''"), false),
        ("I32", duration("2562047h47m16.854775807s"), true),
        ("I32", duration("2562047h47m16.854775808s"), false),
    ] {
        let decoded = ImageConfig::decode(&[file("c.yaml", &*text)], Profile::Kube);
        match decoded {
            Ok(_) => assert!(decodes, "{rule}: {text}"),
            Err(errors) => {
                assert!(!decodes, "{rule}: {errors}\n{text}");
                assert!(
                    errors.problems().iter().all(|problem| problem.stage == ConfigStage::Decode),
                    "{rule}: {errors}"
                );
            }
        }
    }
}
