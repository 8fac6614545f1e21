//! Files on disk: what changes, what stays, and what is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use navicert_types::tree::{Node, Syntax, parse};

use super::*;
use crate::kubeconfig::KubeconfigSources;

const TEXT: &str = "\
# work
apiVersion: v1
kind: Config
users:
- name: ann # me
  user:
    token: canary
contexts:
- name: dev
  context: {cluster: c, user: ann}
current-context: dev
";

fn exec() -> Node {
    parse(br#"{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "navicert", "interactiveMode": "Never"}}"#, Syntax::Json)
        .unwrap()
}

fn changes(path: &Path) -> KubeconfigChanges {
    KubeconfigChanges::load(&KubeconfigSources::Explicit(path.to_owned()), Path::new("/")).unwrap()
}

fn one(changes: KubeconfigChanges) -> FileChange {
    let mut changes = changes.finish().unwrap();
    assert_eq!(changes.len(), 1);
    changes.remove(0)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// L1112
#[test]
fn user_is_added_and_a_context_uses_it_and_nothing_else_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, TEXT).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let mut edit = changes(&path);
    edit.put_user("oidc", &exec(), false).unwrap();
    edit.set_context_user("dev", "oidc").unwrap();
    let change = one(edit);
    assert!(!change.diff().contains("canary"), "{}", change.diff());
    assert!(
        change.diff().contains("+- name: oidc\n") && change.diff().contains(" - name: ann # me\n"),
        "{}",
        change.diff()
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), TEXT, "not written yet");
    let backup = change.write().unwrap().unwrap();
    let entry = "- name: oidc\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: navicert\n      interactiveMode: Never\n";
    let expected =
        TEXT.replace("contexts:", &format!("{entry}contexts:")).replace("user: ann}", "user: \"oidc\"}");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    assert_eq!((mode(&path), fs::read_to_string(&backup).unwrap()), (0o640, TEXT.to_owned()));
    assert_eq!(
        (mode(&backup), names(dir.path())),
        (0o600, vec!["config".to_owned(), "config.bak".to_owned()])
    );
    // A second time nothing is left to do.
    let mut edit = changes(&path);
    edit.put_user("oidc", &exec(), false).unwrap();
    edit.set_context_user("dev", "oidc").unwrap();
    assert!(edit.finish().unwrap().is_empty());
}

// L1112
#[test]
fn other_content_is_replaced_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, TEXT).unwrap();
    let error = changes(&path).put_user("ann", &exec(), false).unwrap_err();
    assert_eq!(error.class(), FileEditErrorClass::Conflict);
    assert!(error.to_string().contains("user `ann` exists in"), "{error}");
    let mut edit = changes(&path);
    edit.put_user("ann", &exec(), true).unwrap();
    let change = one(edit);
    assert!(change.diff().contains("-    token: REDACTED\n"), "{}", change.diff());
    change.write().unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("- name: ann # me\n  user:\n    exec:\n"));
    assert!(matches!(
        changes(&path).set_context_user("none", "ann"),
        Err(FileEditError::UnknownContext { .. })
    ));
}

#[test]
fn user_that_kubectl_has_rewritten_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let text = "users:\n- name: a\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      args: null\n      command: navicert\n      env: null\n      interactiveMode: Never\n      provideClusterInfo: false\n";
    fs::write(&path, text).unwrap();
    let mut edit = changes(&path);
    edit.put_user("a", &exec(), false).unwrap();
    assert!(edit.finish().unwrap().is_empty());
}

// L1112
#[test]
fn missing_file_is_created_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/.kube/config");
    let mut edit = changes(&path);
    edit.put_user("oidc", &exec(), false).unwrap();
    let change = one(edit);
    assert!(change.is_new() && change.diff().starts_with("--- /dev/null\n"), "{}", change.diff());
    assert_eq!(change.write().unwrap(), None);
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .starts_with("apiVersion: v1\nkind: Config\nusers:\n- name: oidc\n")
    );
    assert!(changes(&dir.path().join("none")).finish().unwrap().is_empty(), "nothing to create");
}

// L1112
#[test]
fn symbolic_link_is_followed_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    let (link, target) = (dir.path().join("config"), dir.path().join("real/file"));
    fs::write(&target, TEXT).unwrap();
    symlink("real/file", &link).unwrap();
    let mut edit = changes(&link);
    edit.put_user("oidc", &exec(), false).unwrap();
    let backup = one(edit).write().unwrap().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("- name: oidc"));
    assert_eq!(backup, dir.path().join("real/file.bak"));
    assert_eq!(names(dir.path()), ["config", "real"]);
}

// C127, L1112
#[test]
fn lock_of_kubectl_and_changes_of_others_are_respected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, TEXT).unwrap();
    let change = || {
        let mut edit = changes(&path);
        edit.put_user("oidc", &exec(), false).unwrap();
        one(edit)
    };
    let prepared = change();
    let lock = dir.path().join("config.lock");
    fs::write(&lock, "").unwrap();
    let error = prepared.write().unwrap_err();
    assert!(matches!(&error, FileEditError::Locked { lock: found } if *found == lock), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
    assert_eq!(names(dir.path()), ["config", "config.lock"], "a lock of others stays");
    fs::remove_file(&lock).unwrap();
    fs::write(&path, format!("{TEXT}# by another program\n")).unwrap();
    assert!(matches!(prepared.write(), Err(FileEditError::Changed { .. })));
    change().write().unwrap();
    assert!(fs::read_to_string(&path).unwrap().ends_with("# by another program\n"));
    assert_eq!(names(dir.path()), ["config", "config.bak"]);
}

// As client-go: where an entry is, else the first file that exists.
#[test]
fn each_entry_is_changed_in_its_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["none", "first", "second"].map(|name| dir.path().join(name));
    fs::write(&paths[1], "users: []\n").unwrap();
    fs::write(&paths[2], TEXT).unwrap();
    let load = || KubeconfigChanges::load(&KubeconfigSources::list(paths.clone()), Path::new("/")).unwrap();
    let mut edit = load();
    edit.put_user("oidc", &exec(), false).unwrap();
    edit.set_context_user("dev", "oidc").unwrap();
    let changed: Vec<_> = edit.finish().unwrap().iter().map(|change| change.path().to_owned()).collect();
    assert_eq!(changed, paths[1..]);
    let mut edit = load();
    edit.put_user("ann", &exec(), true).unwrap();
    assert_eq!(one(edit).path(), paths[2]);
}

#[test]
fn invalid_file_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, "users: {}\n").unwrap();
    let error = KubeconfigChanges::load(&KubeconfigSources::Explicit(path), Path::new("/")).unwrap_err();
    assert!(matches!(error, FileEditError::Invalid { .. }), "{error}");
    let nothing = KubeconfigChanges::load(&KubeconfigSources::Nothing, Path::new("/")).unwrap_err();
    assert!(nothing.to_string().contains("--kubeconfig"), "{nothing}");
}

#[test]
fn byte_order_mark_and_utf_16_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(TEXT.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for original in [[b"\xEF\xBB\xBF", TEXT.as_bytes()].concat(), utf16] {
        fs::write(&path, &original).unwrap();
        let mut edit = changes(&path);
        edit.set_context_user("dev", "bob").unwrap();
        one(edit).write().unwrap();
        let expected = TEXT.replace("user: ann}", "user: \"bob\"}");
        assert_eq!(fs::read(&path).unwrap(), encode_like(&original, &expected));
    }
}

#[cfg(feature = "exec")]
mod kuberc {
    use navicert_plugin::Environment;

    use super::*;
    use crate::kuberc::KubercSource;
    use crate::{ConfigOptions, kubeconfig::MergedKubeconfig};

    const HEAD: &str = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n";

    fn load(path: &Path) -> Result<KubercChanges, FileEditError> {
        KubercChanges::load(&KubercSource::Home(path.to_owned()))
    }

    fn program(command: &str) -> AllowedProgram {
        AllowedProgram { command: command.to_owned(), ..AllowedProgram::default() }
    }

    fn after(text: Option<&str>, program: &AllowedProgram, replaces: bool) -> Result<String, FileEditError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kuberc");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        let mut edit = load(&path)?;
        edit.allow(program, replaces)?;
        edit.finish()?.write()?;
        Ok(fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn entry_makes_an_allowlist_and_keeps_the_rest() {
        let list = "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: /bin/sh\n";
        let sh = program("/bin/sh");
        assert_eq!(after(None, &sh, false).unwrap(), format!("{HEAD}{list}"));
        assert_eq!(after(Some("# mine\n"), &sh, false).unwrap(), format!("# mine\n{HEAD}{list}"));
        let text = format!("# mine\n{HEAD}aliases: [] # a\n");
        assert_eq!(after(Some(&text), &sh, false).unwrap(), format!("{text}{list}"));
        let open = format!("{HEAD}credentialPluginPolicy: AllowAll # for now\n");
        assert_eq!(
            after(Some(&open), &sh, false).unwrap(),
            format!("{HEAD}{}", list.replace("Allowlist\ncred", "Allowlist # for now\ncred"))
        );
        let newer = "apiVersion: kubectl.config.k8s.io/v1\nkind: Preference\n---\n";
        let rest = "---\n# more\n";
        assert_eq!(
            after(Some(&format!("{newer}{HEAD}{rest}")), &sh, false).unwrap(),
            format!("{newer}{HEAD}{list}{rest}")
        );
        let known = format!(
            "{HEAD}credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: aws # a\n"
        );
        assert_eq!(after(Some(&known), &sh, false).unwrap(), format!("{known}- command: /bin/sh\n"));
        assert_eq!(after(Some(&known), &program("aws"), false).unwrap(), known);
    }

    #[test]
    fn other_policies_and_conditions_are_replaced_only_on_request() {
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let pinned = AllowedProgram { sha256: digest.parse().ok(), ..program("aws") };
        let denied = format!("{HEAD}credentialPluginPolicy: DenyAll\n");
        let error = after(Some(&denied), &pinned, false).unwrap_err();
        assert_eq!(error.class(), FileEditErrorClass::Denied);
        assert!(after(Some(&denied), &pinned, true).unwrap().contains(digest));
        let known = format!(
            "{HEAD}credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: aws # a\n  args: [eks]\n"
        );
        let error = after(Some(&known), &pinned, false).unwrap_err();
        assert_eq!(error.class(), FileEditErrorClass::Conflict);
        let replaced = after(Some(&known), &pinned, true).unwrap();
        assert_eq!(replaced, format!("{}  sha256: {digest}\n", known.replace("[eks]", "[]")));
        let alpha = "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\n";
        assert!(matches!(after(Some(alpha), &pinned, true), Err(FileEditError::NoPolicyInVersion { .. })));
        assert!(matches!(after(Some("kind: Other\n"), &pinned, true), Err(FileEditError::Invalid { .. })));
        assert!(matches!(KubercChanges::load(&KubercSource::Nowhere), Err(FileEditError::KubercDisabled)));
    }

    #[test]
    fn libraries_join_those_of_the_entry() {
        let signer =
            |library: &str| AllowedProgram { libraries: vec![library.to_owned()], ..program("signer") };
        let one = after(None, &signer("/a.so"), false).unwrap();
        assert!(one.ends_with("- command: signer\n  pathLib:\n  - /a.so\n"), "{one}");
        assert_eq!(after(Some(&one), &signer("/a.so"), false).unwrap(), one);
        assert_eq!(after(Some(&one), &signer("/b.so"), false).unwrap(), format!("{one}  - /b.so\n"));
    }

    fn merged(path: &Path) -> MergedKubeconfig {
        ConfigOptions::new(Environment::empty(), "/").kubeconfig(path).load().unwrap()
    }

    // C731: the policy itself decides which of them are forbidden.
    #[test]
    fn plugins_in_use_that_become_forbidden_are_found_and_can_be_added() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        let user = |name: &str, command: &str, env: &str| {
            format!(
                "- name: {name}\n  user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, interactiveMode: Never, env: {env}}}}}\n"
            )
        };
        let users = [
            user("a", "/bin/sh", "[]"),
            user("b", "/bin/cat", "[{name: X, value: canary}]"),
            user("c", "/bin/cat", "[{name: A, value: b}]"),
            user("d", "/no/such", "[]"),
        ];
        fs::write(&config, format!("users:\n{}", users.concat())).unwrap();
        let kubeconfig = merged(&config);
        let mut edit = load(&dir.path().join("kuberc")).unwrap();
        assert!(edit.starts_allowlist());
        edit.allow(&program("/bin/sh"), false).unwrap();
        let environment = Environment::empty();
        let found = edit.newly_denied(&kubeconfig, &environment).unwrap();
        let (env_names, users) = (vec!["A".to_owned(), "X".to_owned()], vec!["b".to_owned(), "c".to_owned()]);
        assert_eq!(
            found,
            [UsedPlugin { command: "/bin/cat".to_owned(), env_names, users, is_listed: false }]
        );
        edit.allow(&found[0].to_allowed(), false).unwrap();
        assert!(edit.newly_denied(&kubeconfig, &environment).unwrap().is_empty());
        assert_eq!(variables_set_for(Path::new("/bin/cat"), &kubeconfig, &environment), ["A", "X"]);
    }

    // C731, C741
    #[test]
    fn users_that_a_replaced_entry_no_longer_permits_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let (config, kuberc) = (dir.path().join("config"), dir.path().join("kuberc"));
        let user = |name: &str, args: &str| {
            format!(
                "- name: {name}\n  user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/cat, args: {args}, interactiveMode: Never}}}}\n"
            )
        };
        fs::write(&config, format!("users:\n{}{}", user("a", "[eks]"), user("b", "[sts]"))).unwrap();
        fs::write(&kuberc, after(None, &program("/bin/cat"), false).unwrap()).unwrap();
        let mut edit = load(&kuberc).unwrap();
        assert!(!edit.starts_allowlist());
        let narrower = AllowedProgram { args: vec!["eks".to_owned()], ..program("/bin/cat") };
        edit.allow(&narrower, true).unwrap();
        let found = edit.newly_denied(&merged(&config), &Environment::empty()).unwrap();
        let expected = UsedPlugin {
            command: "/bin/cat".to_owned(),
            env_names: Vec::new(),
            users: vec!["b".to_owned()],
            is_listed: true,
        };
        assert_eq!(found, [expected]);
    }
}
