//! Locating the kuberc, and that an invalid one permits nothing.

use std::path::PathBuf;

use navicert_plugin::{Command, Environment};

use super::*;
use crate::kubeconfig::MemoryFileSystem;

const PATH: &str = "/no-such-root/kuberc";

fn load_text(text: &str) -> Result<Policy, KubercError> {
    let files = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("kuberc"), text.as_bytes().to_vec())]);
    load(&KubercSource::Home(PATH.into()), &files)
}

fn beta(rest: &str) -> String {
    format!("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n{rest}")
}

fn error_text(text: &str) -> String {
    navicert_types::error_chain(&load_text(text).unwrap_err())
}

fn permits(policy: &Policy, command: &str) -> bool {
    policy.permit(Command::new(command, Environment::empty())).is_ok()
}

// C701
#[test]
fn flag_precedes_variable_precedes_home() {
    let locate = |flag: Option<&str>, variable: Option<&str>, feature: Option<&str>| {
        let (flag, variable, feature) =
            (flag.map(Path::new), variable.map(OsStr::new), feature.map(OsStr::new));
        KubercSource::locate(KubercLocation { flag, variable, feature, home: Some(Path::new("/h")) })
    };
    let home = "/h/.kube/kuberc";
    let rows = [
        (Some("/f"), Some("/v"), None, KubercSource::Named("/f".into())),
        (Some(home), Some("/v"), None, KubercSource::Named("/v".into())),
        (Some(home), None, None, KubercSource::Named(home.into())),
        (None, Some("/v"), None, KubercSource::Named("/v".into())),
        (None, Some(""), None, KubercSource::Home(home.into())),
        (None, None, None, KubercSource::Home(home.into())),
        (None, Some("off"), None, KubercSource::Nowhere),
        (Some("/f"), None, Some("false"), KubercSource::Nowhere),
        (None, None, Some("true"), KubercSource::Home(home.into())),
    ];
    for (flag, variable, feature, expected) in rows {
        assert_eq!(locate(flag, variable, feature).unwrap(), expected, "{flag:?} {variable:?} {feature:?}");
    }
    assert!(matches!(locate(Some("/f"), Some("off"), None), Err(KubercError::FlagWhileOff)));
}

// C702, C705, C742
#[test]
fn decodes_policies() {
    for text in [
        "",
        "# nothing\n",
        &beta(""),
        &beta("credentialPluginPolicy: AllowAll\n"),
        &beta("aliases: [{anything: 1}]\n"),
    ] {
        assert!(permits(&load_text(text).unwrap(), "/bin/sh"), "{text}");
    }
    assert!(!permits(&load_text(&beta("credentialPluginPolicy: DenyAll\n")).unwrap(), "/bin/sh"));
    let listed = load_text(&beta("credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: /bin/sh}, {name: /bin/true}]\n")).unwrap();
    assert!(permits(&listed, "/bin/sh") && permits(&listed, "/bin/true") && !permits(&listed, "/bin/cat"));
    // C704: equal values of both fields do not conflict.
    let twice =
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: /bin/sh, name: /bin/sh}]\n";
    assert!(permits(&load_text(&beta(twice)).unwrap(), "/bin/sh"));
    let alpha = "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\noverrides: []\n";
    assert!(permits(&load_text(alpha).unwrap(), "/bin/sh"));
}

// C741
#[test]
fn decodes_navicert_conditions() {
    let policy = load_text(&beta(
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: /bin/sh\n  args: [-c]\n  envNames: [PATH]\n",
    ))
    .unwrap();
    let command = || Command::new("/bin/sh", Environment::empty());
    assert!(policy.permit(command().args(["-c", "x"]).env("PATH", "/bin")).is_ok());
    assert!(policy.permit(command()).is_err());
    let denied = policy.permit(command().args(["-c"]).env("BROWSER", "x")).unwrap_err().to_string();
    let line = format!("in the entry `command: /bin/sh` of \"{PATH}\": envNames: [\"PATH\", \"BROWSER\"]");
    assert!(denied.ends_with(&line), "{denied}");
}

// C703
#[test]
fn first_supported_document_wins() {
    let newer = "apiVersion: kubectl.config.k8s.io/v1\nkind: Preference\nfuture: true\n";
    let both = format!(
        "{newer}---\n{}---\n{}",
        beta("credentialPluginPolicy: DenyAll\n"),
        beta("credentialPluginPolicy: AllowAll\n")
    );
    assert!(!permits(&load_text(&both).unwrap(), "/bin/sh"));
    assert!(
        error_text(newer).contains("unsupported version `kubectl.config.k8s.io/v1` of kind `Preference`")
    );
}

// C720, C740: the file, the line, and what is expected there.
#[test]
fn invalid_file_permits_nothing_and_names_the_position() {
    let rows = [
        (
            "credentialPluginPolicy: Alowlist\n",
            "unknown plugin policy: \"Alowlist\" (line 3, column 25); expected `AllowAll`, `DenyAll` or `Allowlist`",
        ),
        (
            "credentialPluginPolcy: DenyAll\n",
            "credentialPluginPolcy: unknown field (line 3, column 1); did you mean `credentialPluginPolicy`?",
        ),
        (
            "credentialPluginPolicy: 5\n",
            "credentialPluginPolicy: expected a string, found a number (line 3, column 25)",
        ),
        (
            "credentialPluginAllowlist: []\n",
            "misconfigured credential plugin allowlist: plugin policy is \"\" but allowlist is non-nil (line 3, column 28)",
        ),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: [{command: a}]\n",
            "plugin policy is \"DenyAll\" but allowlist is non-nil (line 4",
        ),
        ("credentialPluginPolicy: Allowlist\n", "but allowlist is unspecified (line 3, column 25)"),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: []\n",
            "but allowlist is empty; use \"DenyAll\" policy instead (line 4",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: a\n- {}\n",
            "credentialPluginAllowlist[1]: misconfigured credential plugin allowlist: empty allowlist entry #2 (line 6",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: /a//b\n",
            "non-normalized file path: \"/a//b\" vs \"/a/b\" (line 5",
        ),
        // C704
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: a\n  name: b\n",
            "`command` and its deprecated alias `name` differ",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: a\n  sha256: zz\n",
            "`zz` is not a sha256 digest",
        ),
        // C741
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: a\n  envNames: [A, 'B=c']\n",
            "credentialPluginAllowlist[0]: invalid environment variable name \"B=c\" in `envNames` of allowlist entry #1 (line 5",
        ),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginPolicy: AllowAll\n",
            "duplicate field, first on line 3 (line 4",
        ),
        (": :\n\t", "line "),
    ];
    for (rest, expected) in rows {
        let error = error_text(&beta(rest));
        assert!(error.contains(expected) && error.contains(PATH), "{rest}: {error}");
    }
    let alpha =
        "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    assert!(error_text(alpha).contains("credentialPluginPolicy: unknown field (line 3, column 1)"));
    let second = format!("---\n# first\n---\n{}", beta("credentialPluginPolicy: no\n"));
    assert!(error_text(&second).contains("line 6"), "lines are those of the file: {}", error_text(&second));
}

// C740: at any location.
#[test]
fn named_file_must_exist_and_default_file_may_be_missing() {
    let nothing = MemoryFileSystem::new("/no-such-root", []);
    assert!(load(&KubercSource::Home(PATH.into()), &nothing).is_ok());
    assert!(load(&KubercSource::Nowhere, &nothing).is_ok());
    assert!(matches!(load(&KubercSource::Named(PATH.into()), &nothing), Err(KubercError::Unreadable { .. })));
    let with_directory = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("kuberc/x"), Vec::new())]);
    assert!(matches!(
        load(&KubercSource::Home(PATH.into()), &with_directory),
        Err(KubercError::Unreadable { .. })
    ));
}
