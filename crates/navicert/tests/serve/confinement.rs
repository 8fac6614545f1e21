//! Confinement: what is logged at start, which files a reload may name, and settings.

use std::fs;
use std::os::unix::fs::symlink;

use navicert_testkit::{Ca, Program, report};
use serde_json::{Value, json};

use super::{NAVICERT, OPEN, Serving, Setup};

const HEAD: &str = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";

/// The fields of the event in the log.
fn applied(serving: &Serving) -> Value {
    let output = serving.running.output();
    let line = output.lines().find(|line| line.contains("\"confinement_applied\"")).unwrap().to_owned();
    serde_json::from_str(&line).unwrap()
}

fn has_landlock(serving: &Serving) -> bool {
    let state = applied(serving)["landlock"].as_str().unwrap().to_owned();
    let is_enforced = state.starts_with("ABI ");
    assert!(is_enforced || state.starts_with("unavailable: the kernel"), "{state}");
    if !is_enforced {
        report::skipped("landlock", &state);
    }
    is_enforced
}

async fn confined(setup: &Setup, navicert_config: &str) -> Serving {
    setup.write("navicert.yaml", &format!("{HEAD}{navicert_config}"));
    let flags = [OPEN, &["--navicert-config", "navicert.yaml", "--log-format", "json"]].concat();
    setup.serve(&flags).await
}

#[tokio::test]
async fn start_reports_what_is_in_force_on_every_thread() {
    let setup = Setup::new();
    let serving = confined(&setup, "servers: {auditLogPath: audit.log}\n").await;
    let event = applied(&serving);
    assert_eq!((&event["no_new_privs"], &event["seccomp"]), (&json!("enforced"), &json!("enforced")));
    assert_eq!(event["unconfined_threads"], 0, "the audit log's thread is started later");
    has_landlock(&serving);
    let threads: Vec<_> = fs::read_dir(format!("/proc/{}/task", serving.running.pid())).unwrap().collect();
    assert!(threads.len() > 2, "a runtime and the writer of the audit log");
    for thread in threads {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    }
}

#[tokio::test]
async fn measures_can_be_switched_off() {
    let setup = Setup::new();
    let serving =
        confined(&setup, "servers: {confinement: {noNewPrivileges: off, landlock: off, seccomp: off}}\n")
            .await;
    let event = applied(&serving);
    for measure in ["no_new_privs", "landlock", "seccomp"] {
        assert_eq!(event[measure], "off: by configuration", "{measure}");
    }
    let status = fs::read_to_string(format!("/proc/{}/status", serving.running.pid())).unwrap();
    assert!(status.contains("NoNewPrivs:\t0") && status.contains("Seccomp:\t0"), "{status}");
}

// Files of the configuration are replaced by rename, or by switching the link of a mounted ConfigMap.
#[tokio::test]
async fn reload_follows_replaced_files_and_config_maps() {
    let setup = Setup::new();
    for (version, prefix) in [("..1", "oidc:"), ("..2", "other:")] {
        fs::create_dir_all(setup.path("mounted").join(version)).unwrap();
        setup.write(&format!("mounted/{version}/config.yaml"), &setup.config(prefix));
    }
    symlink("..1", setup.path("mounted/..data")).unwrap();
    symlink("..data/config.yaml", setup.path("mounted/config.yaml")).unwrap();
    fs::remove_file(setup.path("config.yaml")).unwrap();
    symlink("mounted/config.yaml", setup.path("config.yaml")).unwrap();
    let serving = confined(&setup, "").await;
    let token = setup.token(&json!({}));
    serving.until(&setup.ca, &token, "oidc:ann").await;
    symlink("..2", setup.path("mounted/..new")).unwrap();
    fs::rename(setup.path("mounted/..new"), setup.path("mounted/..data")).unwrap();
    serving.until(&setup.ca, &token, "other:ann").await;
    let new = Ca::new("new");
    let identity = new.server().issue();
    for (name, text) in [("tls.key", identity.key_pem()), ("tls.crt", identity.chain_pem())] {
        setup.write("replacement", &text);
        fs::rename(setup.path("replacement"), setup.path(name)).unwrap();
    }
    serving.until(&new, &token, "other:ann").await;
}

// A file that the server may not read is not ignored: the reload is rejected, and the sentence says what to do.
#[tokio::test]
async fn reload_that_names_a_file_elsewhere_needs_a_restart() {
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |name: &str| elsewhere.path().join(name).display().to_string();
    fs::write(at("revoked.yaml"), "apiVersion: navicert/v1alpha1\nkind: RevocationList\n").unwrap();
    let setup = Setup::new();
    fs::write(at("keys.json"), setup.issuer.jwks().to_string()).unwrap();
    let serving = confined(&setup, "").await;
    let url = setup.issuer.issuer_url();
    for (config, file, verb) in [
        (format!("issuers: [{{url: '{url}', jwksFile: {}}}]\n", at("keys.json")), at("keys.json"), "read"),
        (format!("revocationList: {}\n", at("revoked.yaml")), at("revoked.yaml"), "read"),
        (format!("lastGoodCopy: {}\n", at("copy.yaml")), at("copy.yaml"), "write"),
    ] {
        setup.write("navicert.yaml", &format!("{HEAD}{config}"));
        if has_landlock(&serving) {
            let sentence = format!(
                "`{file}` is outside the directories that this server may {verb} since its start; restart it to use the file"
            );
            serving.running.wait_for_output(&sentence).await;
            let (_, told) = serving.inspect("/readyz?verbose").await;
            assert!(told.contains(&sentence), "{told}");
        }
    }
    // A certificate may be a link, and the link may change. It is replaced at once: a moment without it is another failure.
    fs::copy(setup.path("tls.crt"), at("tls.crt")).unwrap();
    symlink(at("tls.crt"), setup.path("replacement")).unwrap();
    fs::rename(setup.path("replacement"), setup.path("tls.crt")).unwrap();
    if has_landlock(&serving) {
        serving.running.wait_for_output("tls_certificate_reload_failed").await;
        let output = serving.running.output();
        let line = output.lines().find(|line| line.contains("tls_certificate_reload_failed")).unwrap();
        assert!(line.contains("restart it to use the file") && line.contains("Permission denied"), "{line}");
    }
    // Since the start it may: a restart helps.
    let restarted = setup.serve(&[OPEN, &["--navicert-config", "navicert.yaml"]].concat()).await;
    restarted.until(&setup.ca, &setup.token(&json!({})), "oidc:ann").await;
    assert!(elsewhere.path().join("copy.yaml").exists());
}

#[test]
fn check_prints_what_would_be_applied() {
    let setup = Setup::new();
    setup.write("navicert.yaml", &format!("{HEAD}servers: {{auditLogPath: audit.log}}\n"));
    let check = |format: &str| {
        let outcome = Program::new(NAVICERT)
            .arguments([
                "serve",
                "webhook",
                "--check",
                "-o",
                format,
                "--authentication-config",
                "config.yaml",
            ])
            .arguments(["--navicert-config", "navicert.yaml"])
            .arguments(OPEN)
            .directory(setup.dir.path())
            .run()
            .unwrap();
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
        String::from_utf8(outcome.stdout).unwrap()
    };
    let text = check("text");
    let line = text.lines().find(|line| line.starts_with("confinement: ")).unwrap();
    assert!(line.starts_with("confinement: no_new_privs enforced; landlock "), "{line}");
    let report: Value = serde_json::from_str(&check("json")).unwrap();
    let dir = setup.dir.path().canonicalize().unwrap().display().to_string();
    for access in ["read", "write"] {
        let paths = report["confinement"][access].as_array().unwrap();
        assert!(paths.contains(&json!(dir)) && !paths.contains(&json!("/")), "{access}: {paths:?}");
    }
    assert_eq!(report["confinement"]["seccomp"], "enforced");
    let is_enforced = report["confinement"]["landlock"].as_str().unwrap().starts_with("ABI ");
    assert_eq!(text.contains(&format!("  read: {dir}\n")), is_enforced, "{text}");
}
