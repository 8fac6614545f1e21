//! Tests of the policy: the texts of C720, the decisions of C730–C734, and what C741–C744 add.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::command::Environment;
use crate::error::ResolveError;

/// Two directories of a search path, each with programs of these names.
struct Machine {
    directories: [TempDir; 2],
}

impl Machine {
    fn new(first: &[&str], second: &[&str]) -> Self {
        let machine = Machine { directories: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()] };
        first.iter().for_each(|name| machine.install(0, name));
        second.iter().for_each(|name| machine.install(1, name));
        machine
    }

    fn install(&self, directory: usize, name: &str) {
        let path = self.directories[directory].path().join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self, directory: usize, name: &str) -> String {
        self.directories[directory].path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::join_paths(self.directories.iter().map(TempDir::path)).unwrap();
        Command::new(program, [(OsString::from("PATH"), path)].into_iter().collect())
    }
}

fn allowlist<'a>(commands: impl IntoIterator<Item = &'a str>) -> Policy {
    listed(commands.into_iter().map(AllowlistEntry::new).collect())
}

fn listed(entries: Vec<AllowlistEntry>) -> Policy {
    Policy::from_parts("Allowlist", Some(entries)).unwrap()
}

fn denial(result: Result<Permitted<Command>, PermitError>) -> PolicyDenial {
    match result.unwrap_err() {
        PermitError::Denied(denial) => denial,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rejects_invalid_policies_with_client_go_messages() {
    // C720, C705
    let entry = |command: &str| AllowlistEntry::new(command);
    let message = |policy: &str, list| Policy::from_parts(policy, list).unwrap_err().to_string();
    assert_eq!(message("DisableAll", None), "unknown plugin policy: \"DisableAll\"");
    assert_eq!(message("allowlist", Some(vec![entry("a")])), "unknown plugin policy: \"allowlist\"");
    for policy in ["", "AllowAll", "DenyAll"] {
        for list in [vec![], vec![entry("a")]] {
            let expected = format!(
                "misconfigured credential plugin allowlist: plugin policy is \"{policy}\" but allowlist is non-nil"
            );
            assert_eq!(message(policy, Some(list)), expected);
        }
    }
    let unspecified = "credential plugin policy set to \"Allowlist\", but allowlist is unspecified";
    assert_eq!(message("Allowlist", None), unspecified);
    let empty = "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead";
    assert_eq!(message("Allowlist", Some(vec![])), empty);
    let empty_entry = "misconfigured credential plugin allowlist: empty allowlist entry #2";
    assert_eq!(message("Allowlist", Some(vec![entry("a"), entry("")])), empty_entry);
    for (written, cleaned) in [("./a", "a"), ("/usr//bin/a", "/usr/bin/a"), ("/usr/bin/a/", "/usr/bin/a")] {
        let expected = format!("non-normalized file path: \"{written}\" vs \"{cleaned}\"");
        assert_eq!(message("Allowlist", Some(vec![entry(written)])), expected);
    }
}

#[test]
fn allow_all_and_empty_policy_allow_existing_programs() {
    // C730, C705
    let machine = Machine::new(&["plugin"], &[]);
    for policy in [
        Policy::default(),
        Policy::from_parts("", None).unwrap(),
        Policy::from_parts("AllowAll", None).unwrap(),
    ] {
        let permitted = policy.permit(machine.command("plugin")).unwrap();
        assert_eq!(permitted.program(), Path::new(&machine.path(0, "plugin")));
        assert!(!permitted.is_pinned(), "nothing was compared, so there is nothing to hold on to");
        let error = policy.permit(machine.command("absent")).unwrap_err();
        assert!(matches!(error, PermitError::Unresolved(ResolveError::NotInPath { .. })), "{error:?}");
    }
}

#[test]
fn deny_all_denies_existing_and_missing_programs() {
    // C730, C325: the message has the cleaned configured command.
    let machine = Machine::new(&["plugin"], &[]);
    let policy = Policy::from_parts("DenyAll", None).unwrap();
    for (command, shown) in
        [("plugin", "plugin"), ("absent", "absent"), ("/usr//bin/p", "/usr/bin/p"), ("./p", "./p")]
    {
        let message = denial(policy.permit(machine.command(command))).to_string();
        assert_eq!(message, format!("plugin \"{shown}\" not allowed: policy set to \"DenyAll\""));
    }
}

#[test]
fn entry_matches_the_program_found_in_path() {
    // C731, C734, T13: command × entry, each absolute (in the first or second directory) or bare.
    let machine = Machine::new(&["plugin", "first-only"], &["plugin", "second-only"]);
    let absolute = |directory, name| machine.path(directory, name);
    let cases = [
        ("plugin".to_owned(), "plugin".to_owned(), true),
        (absolute(0, "plugin"), absolute(0, "plugin"), true),
        (absolute(1, "plugin"), absolute(1, "plugin"), true),
        // The KEP's matrix: allowed only if the lookup finds the same file.
        (absolute(0, "plugin"), "plugin".to_owned(), true),
        (absolute(1, "plugin"), "plugin".to_owned(), false),
        ("plugin".to_owned(), absolute(0, "plugin"), true),
        ("plugin".to_owned(), absolute(1, "plugin"), false),
        (absolute(0, "plugin"), absolute(1, "plugin"), false),
        ("second-only".to_owned(), absolute(1, "second-only"), true),
        (absolute(1, "second-only"), "second-only".to_owned(), true),
        ("first-only".to_owned(), "second-only".to_owned(), false),
        ("first-only".to_owned(), "first".to_owned(), false),
    ];
    for (command, entry, allowed) in cases {
        for entries in
            [vec![&*entry], vec!["other", &entry, "/no/such/file"], vec!["/no/such/file", "other", &entry]]
        {
            let decision = allowlist(entries).permit(machine.command(&command));
            assert_eq!(decision.is_ok(), allowed, "command {command}, entry {entry}: {decision:?}");
        }
    }
}

#[test]
fn decides_every_combination_of_policy_list_and_command() {
    // T13, C720, C730, C731: policy × list × entry × command; the expected decision is computed independently.
    let machine = Machine::new(&["plugin", "other"], &[]);
    let spelled = |name: &str| [name.to_owned(), machine.path(0, name)];
    let commands = ["plugin", "gone"].map(|name| spelled(name).map(|written| (name, written))).concat();
    let entries =
        ["plugin", "other", "gone", "nowhere"].map(|name| spelled(name).map(|written| (name, written)));
    let mut tally = [0; 4];
    for policy in ["", "AllowAll", "DenyAll", "Allowlist", "bogus"] {
        for (entry_name, entry) in entries.concat() {
            let lists: [Option<Vec<&str>>; 6] = [
                None,
                Some(vec![]),
                Some(vec![&entry]),
                Some(vec![&entry, "unrelated", "/no/such/file"]),
                Some(vec!["/no/such/file", &entry, "unrelated"]),
                Some(vec!["unrelated", "/no/such/file", &entry]),
            ];
            for list in lists {
                let listed =
                    list.as_ref().map(|list| list.iter().copied().map(AllowlistEntry::new).collect());
                let is_valid = match policy {
                    "Allowlist" => list.as_ref().is_some_and(|list| !list.is_empty()),
                    "bogus" => false,
                    _ => list.is_none(),
                };
                let Ok(made) = Policy::from_parts(policy, listed) else {
                    assert!(!is_valid, "{policy:?} {list:?}");
                    tally[0] += 1;
                    continue;
                };
                assert!(is_valid, "{policy:?} {list:?}");
                for (name, command) in &commands {
                    let exists = *name == "plugin";
                    let named = if exists { entry_name == *name } else { entry == *command };
                    let allowed = match policy {
                        "Allowlist" => named,
                        "DenyAll" => false,
                        _ => true,
                    };
                    let decision = made.permit(machine.command(command));
                    let case = format!("{policy:?} {list:?} {command}: {decision:?}");
                    match decision {
                        Ok(_) => assert!(allowed && exists, "{case}"),
                        Err(PermitError::Unresolved(_)) => assert!(allowed && !exists, "{case}"),
                        Err(PermitError::Denied(_)) => assert!(!allowed, "{case}"),
                        Err(_) => panic!("{case}"),
                    }
                    tally[if !allowed {
                        3
                    } else if exists {
                        1
                    } else {
                        2
                    }] += 1;
                }
            }
        }
    }
    // Invalid policies, then permitted, not found, denied.
    assert_eq!(tally, [184, 48, 40, 136]);
}

#[test]
fn order_of_path_decides_which_program_matches() {
    // T13, C731, C734: nothing but the order of PATH changes between two runs.
    let machine = Machine::new(&["plugin"], &["plugin"]);
    let [first, second] = [0, 1].map(|directory| machine.path(directory, "plugin"));
    let reordered = || {
        let path = std::env::join_paths(machine.directories.iter().rev().map(TempDir::path)).unwrap();
        Command::new("plugin", [(OsString::from("PATH"), path)].into_iter().collect())
    };
    let policy = allowlist([&*first]);
    assert!(policy.permit(machine.command("plugin")).is_ok());
    let PolicyDenial::NotListed { path } = denial(policy.permit(reordered())) else { panic!() };
    assert_eq!(path, second);
    // A bare entry matches the program found at the time.
    let policy = allowlist(["plugin"]);
    assert_eq!(policy.permit(machine.command("plugin")).unwrap().program(), Path::new(&first));
    assert_eq!(policy.permit(reordered()).unwrap().program(), Path::new(&second));
}

#[test]
fn denial_names_the_resolved_path() {
    // C731 (4)
    let machine = Machine::new(&["plugin"], &[]);
    let message = denial(allowlist(["other"]).permit(machine.command("plugin"))).to_string();
    let path = machine.path(0, "plugin");
    assert_eq!(
        message,
        format!("plugin path \"{path}\" is not permitted by the credential plugin allowlist")
    );
}

#[test]
fn unresolvable_command_is_denied_unless_listed_verbatim() {
    // C731 (1) and (2): listed verbatim it is allowed, and then not found (C320).
    let machine = Machine::new(&[], &[]);
    let denied = denial(allowlist(["other"]).permit(machine.command("absent")));
    let expected = "plugin path \"absent\" cannot be resolved for credential plugin allowlist check";
    assert_eq!(denied.to_string(), expected);
    assert_eq!(std::error::Error::source(&denied).unwrap().to_string(), "`absent` was not found in PATH");
    for command in ["absent", "/no/such/file"] {
        let error = allowlist([command]).permit(machine.command(command)).unwrap_err();
        assert!(matches!(&error, PermitError::Unresolved(source) if source.is_not_found()), "{error:?}");
    }
}

#[test]
fn compares_text_and_does_not_follow_symlinks() {
    // C732, T13
    let machine = Machine::new(&["plugin"], &[]);
    symlink(machine.path(0, "plugin"), machine.path(1, "link")).unwrap();
    assert!(allowlist([&*machine.path(0, "plugin")]).permit(machine.command("link")).is_err());
    assert!(allowlist([&*machine.path(1, "link")]).permit(machine.command("link")).is_ok());
    assert!(allowlist(["link"]).permit(machine.command(&machine.path(0, "plugin"))).is_err());
}

#[test]
fn command_is_cleaned_before_comparison() {
    // C731 (1), C134
    let machine = Machine::new(&["plugin"], &[]);
    let path = machine.path(0, "plugin");
    let policy = allowlist([&*path]);
    assert!(policy.permit(machine.command(&path.replace("/plugin", "//./plugin"))).is_ok());
    assert!(policy.permit(machine.command(&path.replace("/plugin", "/x/../plugin"))).is_ok());
    assert!(allowlist(["plugin"]).permit(machine.command("./plugin")).is_err(), "never looked up in PATH");
}

#[test]
fn remembers_resolved_paths_of_bare_entries() {
    // C731 (3), T13: a second program of that name, earlier in PATH, appears between two runs.
    let machine = Machine::new(&[], &["plugin"]);
    let policy = allowlist(["plugin"]);
    let original = machine.path(1, "plugin");
    assert!(policy.permit(machine.command(&original)).is_ok());
    machine.install(0, "plugin");
    assert!(policy.permit(machine.command(&original)).is_ok());
    assert!(policy.clone().permit(machine.command(&original)).is_err(), "a copy remembers nothing");
    assert!(policy.permit(machine.command(&machine.path(0, "plugin"))).is_ok());
}

#[test]
fn one_entry_must_match_all_its_conditions() {
    // C732, C741: the arguments begin with exactly these.
    let machine = Machine::new(&["plugin"], &[]);
    let policy = listed(vec![
        AllowlistEntry::new("other"),
        AllowlistEntry::new("plugin").args(["get-token", "--profile"]),
        AllowlistEntry::new(machine.path(0, "plugin")).args(["version"]),
    ]);
    for (arguments, allowed) in [
        (&["get-token", "--profile"][..], true),
        (&["get-token", "--profile", "production"], true),
        (&["version"], true),
        (&["get-token"], false),
        (&["get-token", "--profile=x"], false),
        (&["-c", "get-token", "--profile"], false),
        (&[], false),
    ] {
        let decision = policy.permit(machine.command("plugin").args(arguments));
        assert_eq!(decision.is_ok(), allowed, "{arguments:?}");
        if !allowed {
            let message = denial(decision).to_string();
            assert!(
                message.ends_with("is in the credential plugin allowlist, but not with these arguments"),
                "{message}"
            );
        }
    }
}

#[test]
fn denies_every_variable_that_the_entry_does_not_name() {
    // C741, T13: no list of dangerous names is complete, so the entry names the harmless ones.
    let machine = Machine::new(&["plugin"], &[]);
    for name in [
        "LD_PRELOAD",
        "PATH",
        "BASH_FUNC_x%%",
        "PERLLIB",
        "BROWSER",
        "OPENSSL_CONF",
        "GCONV_PATH",
        "AWS_CONFIG_FILE",
        "AWS_PROFILE",
        "HTTPS_PROXY",
        "KUBERNETES_EXEC_INFO",
        "x",
    ] {
        let command = || machine.command("plugin").env("LISTED", "x").env(name, "y").env(name, "z");
        let policy = listed(vec![AllowlistEntry::new("plugin").env_names(["LISTED", "OTHER"])]);
        let PolicyDenial::Variables(denied) = denial(policy.permit(command())) else { panic!("{name}") };
        assert_eq!(denied.names, [name]);
        let named = listed(vec![AllowlistEntry::new("plugin").env_names([name, "LISTED"])]);
        assert!(named.permit(command()).is_ok(), "{name}");
        assert!(Policy::AllowAll.permit(command()).is_ok(), "only an allowlist promises anything");
        let both = named.and(allowlist(["plugin"]));
        assert!(both.permit(command()).is_err(), "both policies decide");
    }
    // Names are compared exactly.
    let policy = listed(vec![AllowlistEntry::new("plugin").env_names(["AWS_PROFILE", "A*", "A"])]);
    for name in ["aws_profile", "AWS_PROFILE ", "AWS", "A*B", "AB", " A"] {
        assert!(policy.permit(machine.command("plugin").env(name, "")).is_err(), "{name}");
    }
    // Variables that the client inherited are the user's own choice, and those of the protocol the client's.
    let inherited: Environment = [("LD_PRELOAD", "mine")].into_iter().collect();
    let own = Command::new(machine.path(0, "plugin"), inherited).protocol_env("KUBERNETES_EXEC_INFO", "{}");
    assert!(allowlist([&*machine.path(0, "plugin")]).permit(own).is_ok());
    // A name with `=` is malformed: it would set PATH in the child.
    for name in ["PATH=/evil", "", "A\0"] {
        let trick = allowlist(["plugin"]).permit(machine.command("plugin").env(name, ""));
        assert!(matches!(trick, Err(PermitError::Malformed(_))), "{trick:?}");
    }
}

#[test]
fn denial_of_variables_prints_the_line_to_write() {
    // C741: all names at once, with those that are listed.
    let machine = Machine::new(&["plugin"], &[]);
    let path = machine.path(0, "plugin");
    let policy = listed(vec![AllowlistEntry::new("plugin").env_names(["AWS_REGION"])]);
    let message = |policy: &Policy, command| denial(policy.permit(command)).to_string();
    assert_eq!(
        message(
            &policy.clone().with_file(Path::new("/home/me/.kube/kuberc")),
            machine.command("plugin").env("NO", "")
        ),
        format!(
            "plugin path \"{path}\" is in the credential plugin allowlist, but its entry does not allow the environment \
             variable `NO`; to let every kubeconfig set it, write in the entry `command: plugin` of \
             \"/home/me/.kube/kuberc\": envNames: [\"AWS_REGION\", \"NO\"]"
        )
    );
    let two = machine.command("plugin").env("BASH_FUNC_x%%", "").env("a\n\"b", "").env("AWS_REGION", "");
    let text = message(&policy, two);
    assert!(
        text.ends_with(
            "variables `BASH_FUNC_x%%`, `a\\n\\\"b`; to let every kubeconfig set them, write in the entry `command: plugin`: \
             envNames: [\"AWS_REGION\", \"BASH_FUNC_x%%\", \"a\\n\\\"b\"]"
        ),
        "{text}"
    );
}

#[test]
fn rejects_variable_names_that_no_environment_has() {
    for name in ["", "A=b", "=", "A\0"] {
        let entries = vec![AllowlistEntry::new("a"), AllowlistEntry::new("b").env_names(["GOOD", name])];
        let error = Policy::from_parts("Allowlist", Some(entries)).unwrap_err();
        assert_eq!(error, PolicyError::VariableName { entry: 2, name: name.to_owned() });
    }
    let twice = AllowlistEntry::new("a").env_names(["A", "A"]);
    assert!(Policy::from_parts("Allowlist", Some(vec![twice])).is_ok());
}

#[test]
fn digest_must_match_the_file() {
    // C741, C743
    let machine = Machine::new(&["plugin"], &[]);
    let digest = "a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf".parse().unwrap();
    let policy = listed(vec![AllowlistEntry::new("plugin").sha256(digest)]);
    assert!(policy.permit(machine.command("plugin")).is_ok());
    fs::write(machine.path(0, "plugin"), "#!/bin/sh\n# changed\n").unwrap();
    let PolicyDenial::Digest { actual, .. } = denial(policy.permit(machine.command("plugin"))) else {
        panic!()
    };
    assert_ne!(actual, digest);
    let updated = listed(vec![
        AllowlistEntry::new("plugin").sha256(digest),
        AllowlistEntry::new("plugin").sha256(actual),
    ]);
    assert!(updated.permit(machine.command("plugin")).is_ok(), "the message says what to write");
}

#[test]
fn combined_policies_allow_only_what_both_allow() {
    // C742: a caller can only make it stricter.
    let machine = Machine::new(&["a", "b"], &[]);
    let permits = |policy: &Policy, name: &str| policy.permit(machine.command(name)).is_ok();
    let both = allowlist(["a", "b"]).and(allowlist(["b"]));
    assert!(!permits(&both, "a") && permits(&both, "b"));
    assert!(!permits(&Policy::AllowAll.and(Policy::DenyAll), "a"));
    assert!(!permits(&allowlist(["a"]).and(Policy::DenyAll), "a"));
    assert!(permits(&Policy::AllowAll.and(allowlist(["a"])), "a"));
    assert!(!permits(&Policy::AllowAll.and(allowlist(["a"])), "b"));
}

#[test]
fn signers_require_an_allowlist_entry() {
    // C744: the same policy, but unlisted programs are denied.
    let machine = Machine::new(&["signer"], &[]);
    let decide = |policy: &Policy| policy.permit_if_listed(machine.command("signer"));
    let unlisted = denial(decide(&Policy::AllowAll));
    assert!(
        matches!(&unlisted, PolicyDenial::MustBeListed { path } if *path == machine.path(0, "signer")),
        "{unlisted:?}"
    );
    assert!(matches!(
        denial(decide(&Policy::AllowAll.and(Policy::AllowAll))),
        PolicyDenial::MustBeListed { .. }
    ));
    assert!(matches!(denial(decide(&Policy::DenyAll)), PolicyDenial::DenyAll { .. }));
    assert!(matches!(denial(decide(&allowlist(["other"]))), PolicyDenial::NotListed { .. }));
    assert!(decide(&allowlist(["signer"])).is_ok());
    assert!(decide(&Policy::AllowAll.and(allowlist(["signer"]))).is_ok());
}

#[test]
fn opening_a_fifo_fails_without_blocking() {
    // C743: opening a FIFO in place of the program must not block.
    let machine = Machine::new(&[], &[]);
    let path = machine.path(0, "plugin");
    rustix::fs::mknodat(rustix::fs::CWD, &*path, rustix::fs::FileType::Fifo, 0o777.into(), 0).unwrap();
    assert!(crate::platform::open_program(Path::new(&path)).is_err());
    assert!(allowlist(["plugin"]).permit(machine.command("plugin")).is_err());
}

#[test]
fn debug_of_permitted_command_shows_no_secret() {
    let machine = Machine::new(&["plugin"], &[]);
    let command = machine.command("plugin").args(["canary"]).env("A", "canary");
    let shown = format!("{:?}", Policy::AllowAll.permit(command).unwrap());
    assert!(!shown.contains("canary") && shown.contains("plugin"), "{shown}");
}
