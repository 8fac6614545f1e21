//! Where a kuberc is looked for, and that a broken one permits nothing.

use std::path::PathBuf;

use navicert_plugin::{Command, Environment};

use super::*;
use crate::kubeconfig::MemoryFolder;

const PATH: &str = "/no-such-root/kuberc";

fn load_text(text: &str) -> Result<Policy, KubercError> {
    let files = MemoryFolder::new("/no-such-root", [(PathBuf::from("kuberc"), text.as_bytes().to_vec())]);
    load(&Source::Home(PATH.into()), &files)
}

fn beta(rest: &str) -> String {
    format!("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n{rest}")
}

fn refusal(text: &str) -> String {
    load_text(text).unwrap_err().to_string()
}

fn permits(policy: &Policy, command: &str) -> bool {
    policy.permit(Command::new(command, Environment::empty())).is_ok()
}

// C701
#[test]
fn the_flag_comes_first_then_the_variable_then_home() {
    let locate = |flag: Option<&str>, variable: Option<&str>, feature: Option<&str>| {
        let (flag, variable, feature) =
            (flag.map(Path::new), variable.map(OsStr::new), feature.map(OsStr::new));
        Source::locate(Wishes { flag, variable, feature, home: Some(Path::new("/h")) })
    };
    let home = "/h/.kube/kuberc";
    let rows = [
        (Some("/f"), Some("/v"), None, Source::Named("/f".into())),
        (Some(home), Some("/v"), None, Source::Named("/v".into())),
        (Some(home), None, None, Source::Named(home.into())),
        (None, Some("/v"), None, Source::Named("/v".into())),
        (None, Some(""), None, Source::Home(home.into())),
        (None, None, None, Source::Home(home.into())),
        (None, Some("off"), None, Source::Nowhere),
        (Some("/f"), None, Some("false"), Source::Nowhere),
        (None, None, Some("true"), Source::Home(home.into())),
    ];
    for (flag, variable, feature, expected) in rows {
        assert_eq!(locate(flag, variable, feature).unwrap(), expected, "{flag:?} {variable:?} {feature:?}");
    }
    assert!(matches!(locate(Some("/f"), Some("off"), None), Err(KubercError::FlagWhileOff)));
}

// C702, C705, C742
#[test]
fn policies_are_read() {
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
    // C704: the same in both spellings is no contradiction.
    let twice =
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: /bin/sh, name: /bin/sh}]\n";
    assert!(permits(&load_text(&beta(twice)).unwrap(), "/bin/sh"));
    let alpha = "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\noverrides: []\n";
    assert!(permits(&load_text(alpha).unwrap(), "/bin/sh"));
}

// C741
#[test]
fn our_own_conditions_are_read() {
    let policy = load_text(&beta(
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: /bin/sh\n  args: [-c]\n  envNames: [PATH]\n",
    ))
    .unwrap();
    let command = || Command::new("/bin/sh", Environment::empty());
    assert!(policy.permit(command().args(["-c", "x"]).env("PATH", "/bin")).is_ok());
    assert!(policy.permit(command()).is_err());
    assert!(policy.permit(command().args(["-c"]).env("LD_PRELOAD", "x")).is_err());
}

// C703
#[test]
fn the_first_document_that_is_known_counts() {
    let newer = "apiVersion: kubectl.config.k8s.io/v1\nkind: Preference\nfuture: true\n";
    let both = format!(
        "{newer}---\n{}---\n{}",
        beta("credentialPluginPolicy: DenyAll\n"),
        beta("credentialPluginPolicy: AllowAll\n")
    );
    assert!(!permits(&load_text(&both).unwrap(), "/bin/sh"));
    assert!(refusal(newer).contains("`kubectl.config.k8s.io/v1` is not known for kind `Preference`"));
}

// C720, C740: the file, the line, and what is expected there.
#[test]
fn a_broken_file_permits_nothing_and_says_where() {
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
            "`command` and its old spelling `name` differ",
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: a\n  sha256: zz\n",
            "`zz` is not a sha256 digest",
        ),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginPolicy: AllowAll\n",
            "given more than once, first on line 3 (line 4",
        ),
        (": :\n\t", "line "),
    ];
    for (rest, expected) in rows {
        let error = refusal(&beta(rest));
        assert!(error.contains(expected) && error.contains(PATH), "{rest}: {error}");
    }
    let alpha =
        "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    assert!(refusal(alpha).contains("credentialPluginPolicy: unknown field (line 3, column 1)"));
    let second = format!("---\n# first\n---\n{}", beta("credentialPluginPolicy: no\n"));
    assert!(refusal(&second).contains("line 6"), "lines are those of the file: {}", refusal(&second));
}

// C740: at any location.
#[test]
fn a_named_file_has_to_be_there_and_one_at_home_need_not() {
    let nothing = MemoryFolder::new("/no-such-root", []);
    assert!(load(&Source::Home(PATH.into()), &nothing).is_ok());
    assert!(load(&Source::Nowhere, &nothing).is_ok());
    assert!(matches!(load(&Source::Named(PATH.into()), &nothing), Err(KubercError::Unreadable { .. })));
    let folder = MemoryFolder::new("/no-such-root", [(PathBuf::from("kuberc/x"), Vec::new())]);
    assert!(matches!(load(&Source::Home(PATH.into()), &folder), Err(KubercError::Unreadable { .. })));
}
