use std::os::fd::OwnedFd;
use std::sync::Arc;

use navicert_io::runtime_directory::RuntimeDirectory;
use navicert_plugin::keeper::KeeperServer;
use navicert_plugin::{Script, ScriptedRunner};
use navicert_types::SystemClock;
use tempfile::TempDir;

use super::*;
use crate::kubeconfig::OsFileSystem;

const V1: &str = "client.authentication.k8s.io/v1";
const NOW: i64 = 1_800_000_000;

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW + seconds).unwrap()
}

fn answer(status: &str) -> String {
    format!(r#"{{"kind":"ExecCredential","apiVersion":"{V1}","status":{{{status}}}}}"#)
}

fn expiring(seconds: i64) -> String {
    answer(&format!(r#""token":"t0ken","expirationTimestamp":"{}""#, moment(seconds)))
}

// C410, C411
#[test]
fn answer_is_kept_as_long_as_clients_use_it() {
    let until = |text: &str| kept_until(text.as_bytes(), Some(ExecVersion::V1), moment(0));
    let before = |seconds| moment(seconds) - Duration::from_nanos(1);
    assert_eq!(until(&expiring(3600)), Some(before(3590)), "ten seconds early");
    assert_eq!(until(&expiring(50)), Some(before(45)), "a tenth of a short lifetime");
    assert!(until(&expiring(-60)).unwrap() < moment(0), "expired on arrival");
    assert_eq!(until(&answer(r#""token":"t0ken""#)), Some(moment(60)), "no expiry: one minute");
    for not_an_answer in ["", "{}", &answer(r#""token":"""#), r#"{"kind":"Status"}"#] {
        assert_eq!(until(not_an_answer), None, "{not_an_answer}");
    }
    assert_eq!(kept_until(expiring(60).as_bytes(), Some(ExecVersion::V1Beta1), moment(0)), None);
    assert!(kept_until(expiring(60).as_bytes(), None, moment(0)).is_some(), "run by hand");
}

/// A keeper in this process.
struct Setup {
    runtime: TempDir,
    plugin: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let runtime = tempfile::tempdir().unwrap();
        let plugin = runtime.path().join("plugin");
        std::fs::write(&plugin, "#!/bin/sh\n").unwrap();
        for path in [runtime.path(), &plugin] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        }
        Setup { runtime, plugin }
    }

    fn directory(&self) -> RuntimeDirectory {
        let runtime = self.runtime.path().as_os_str().to_owned();
        RuntimeDirectory::locate(&|name| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone()))
    }

    fn context(&self, parent: u32, variables: &[(&str, &str)]) -> KeepContext {
        KeepContext {
            environment: variables.iter().copied().collect(),
            directory: PathBuf::from("/work"),
            parent: Some(parent),
            kuberc: KubercSource::Home(self.runtime.path().join("kuberc")),
        }
    }

    fn plugin(&self, context: &KeepContext, settings: &KeepSettings) -> KeptPlugin {
        KeptPlugin::new(self.plugin.as_os_str(), &["get-token".into()], context, settings).unwrap()
    }

    /// What the process of this context gets, and whether the plugin ran for it.
    fn get(&self, context: &KeepContext, settings: &KeepSettings, script: Script) -> (String, bool) {
        let runner = ScriptedRunner::new([script]);
        let keeper = KeeperClient::new(self.directory(), &start);
        let mut stdout = Vec::new();
        let plugin = self.plugin(context, settings);
        let end = plugin.answer(&keeper, &OsFileSystem, &runner, &SystemClock, &mut stdout);
        assert!(end.is_ok(), "{end:?}");
        (String::from_utf8(stdout).unwrap(), !runner.commands().is_empty())
    }
}

/// Starts the keeper on a thread instead of in a process.
fn start(descriptor: OwnedFd, path: &Path) -> io::Result<()> {
    let server =
        KeeperServer::take_over(descriptor, path, Arc::new(SystemClock)).map_err(io::Error::other)?;
    std::thread::spawn(move || server.serve());
    Ok(())
}

fn fresh(token: &str) -> Script {
    let expires = SystemClock.now() + Duration::from_secs(3600);
    Script::prints(answer(&format!(r#""token":"{token}","expirationTimestamp":"{expires}""#)))
}

const INFO: (&str, &str) = (
    INFO_VARIABLE,
    r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}"#,
);

#[test]
fn second_process_gets_the_kept_answer_byte_for_byte() {
    let setup = Setup::new();
    let settings = KeepSettings::default();
    let (first, ran) = setup.get(&setup.context(10, &[INFO]), &settings, fresh("one"));
    assert!(ran && first.contains("one"));
    assert_eq!(setup.get(&setup.context(11, &[INFO]), &settings, fresh("two")), (first, false));
    let kubectl_again = setup.get(&setup.context(11, &[INFO]), &settings, fresh("two"));
    assert!(kubectl_again.1, "the same client asks again: it was refused with the answer");
    assert!(setup.get(&setup.context(12, &[INFO]), &settings, fresh("three")).0.contains("two"));
}

#[test]
fn answers_of_another_identity_are_not_used() {
    let setup = Setup::new();
    let settings = KeepSettings::default();
    let base = setup.context(10, &[INFO, ("AWS_PROFILE", "one"), ("SHLVL", "1")]);
    assert!(setup.get(&base, &settings, fresh("one")).1);
    let other_level = setup.context(11, &[INFO, ("AWS_PROFILE", "one"), ("SHLVL", "2"), ("OLDPWD", "/tmp")]);
    assert!(!setup.get(&other_level, &settings, fresh("two")).1, "the plugin does not get these variables");
    let other_directory = KeepContext { directory: PathBuf::from("/elsewhere"), ..other_level };
    for context in [
        setup.context(12, &[INFO, ("AWS_PROFILE", "two")]),
        setup.context(13, &[INFO]),
        setup.context(14, &[(INFO.0, &INFO.1.replace("false", "true")), ("AWS_PROFILE", "one")]),
        other_directory,
    ] {
        assert!(setup.get(&context, &settings, fresh("two")).1, "{context:?}");
    }
    std::fs::write(setup.runtime.path().join("kuberc"), "").unwrap();
    assert!(
        setup.get(&setup.context(15, &[INFO, ("AWS_PROFILE", "one")]), &settings, fresh("two")).1,
        "kuberc"
    );
}

#[test]
fn working_directory_and_variables_can_be_left_out() {
    let setup = Setup::new();
    let settings =
        KeepSettings { any_directory: true, drop_env: vec!["TMUX_PANE".into()], ..KeepSettings::default() };
    let here = setup.context(10, &[INFO, ("PWD", "/work"), ("TMUX_PANE", "%1")]);
    let there = KeepContext {
        directory: PathBuf::from("/elsewhere"),
        ..setup.context(11, &[INFO, ("PWD", "/elsewhere"), ("TMUX_PANE", "%2")])
    };
    assert!(setup.get(&here, &settings, fresh("one")).1);
    assert!(!setup.get(&there, &settings, fresh("two")).1);
    let command = setup.plugin(&here, &settings).command;
    assert_eq!((command.variable("PWD"), command.variable("TMUX_PANE")), (None, None));
    assert!(command.variable(INFO_VARIABLE).is_some());
}

#[test]
fn failures_and_what_is_no_answer_are_passed_on_and_not_kept() {
    let setup = Setup::new();
    let settings = KeepSettings::default();
    for (index, script) in
        [Script::exits(3).stdout("Status"), Script::prints("no answer"), Script::dies_by(9)]
            .into_iter()
            .enumerate()
    {
        let index = u32::try_from(index).unwrap();
        let (_, ran) = setup.get(&setup.context(10 + index, &[INFO]), &settings, script);
        assert!(ran);
    }
    let aged = KeepSettings { max_age: Duration::ZERO, ..KeepSettings::default() };
    assert!(setup.get(&setup.context(20, &[INFO]), &aged, fresh("one")).1);
    assert!(setup.get(&setup.context(21, &[INFO]), &aged, fresh("two")).1, "it accepts no age at all");
}

#[test]
fn plugin_runs_as_before_if_there_is_no_keeper() {
    let setup = Setup::new();
    let plugin = setup.plugin(&setup.context(10, &[INFO]), &KeepSettings::default());
    type Start = dyn Fn(OwnedFd, &Path) -> io::Result<()>;
    let broken: [&Start; 2] = [&|_, _| Err(io::ErrorKind::PermissionDenied.into()), &|_, _| Ok(())];
    for start in broken {
        let runner = ScriptedRunner::new([Script::exits(4).stdout("as it is")]);
        let mut stdout = Vec::new();
        let keeper = KeeperClient::new(setup.directory(), start);
        let end = plugin.answer(&keeper, &OsFileSystem, &runner, &SystemClock, &mut stdout).unwrap();
        assert_eq!((end, stdout.as_slice()), (Exit::Code(4), &b"as it is"[..]));
    }
}

// C740, C742
#[test]
fn kuberc_decides_about_the_plugin_too() {
    let setup = Setup::new();
    let kuberc = setup.runtime.path().join("kuberc");
    let attempt = |text: &str| {
        std::fs::write(&kuberc, text).unwrap();
        let runner = ScriptedRunner::new([fresh("one")]);
        let keeper = KeeperClient::new(setup.directory(), &start);
        let plugin = setup.plugin(&setup.context(10, &[INFO]), &KeepSettings::default());
        plugin.answer(&keeper, &OsFileSystem, &runner, &SystemClock, &mut Vec::new())
    };
    let preference = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n";
    let denied = attempt(&format!("{preference}credentialPluginPolicy: DenyAll\n"));
    assert!(matches!(denied, Err(KeepError::Denied(PermitError::Denied(_)))), "{denied:?}");
    let broken = attempt(&format!("{preference}credentialPluginPolicy: Sometimes\n"));
    assert!(matches!(broken, Err(KeepError::Kuberc(_))), "{broken:?}");
    assert!(attempt(preference).is_ok());
}
