//! `navicert gateway`, and commands that join it.

use navicert_testkit::cli::output_schema;
use navicert_testkit::cli::tools;
use navicert_testkit::wait;
use serde_json::json;

use super::secrets::Other;
use super::setup::{Setup, kubectl, text};

#[test]
fn commands_join_a_gateway_that_runs_and_share_its_connection() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let running = setup.navicert(&["gateway"]).start_running().unwrap();
    let told = wait::blocking(running.wait_for_output("\n"));
    let kubeconfig = told.trim();
    // C845: one connection for all of them.
    for _ in 0..3 {
        let script = "echo $KUBECONFIG";
        let joined =
            setup.navicert(&["run", "--gateway", "auto", "--", "/bin/sh", "-c", script]).run().unwrap();
        assert_eq!(text(&joined.stdout).trim(), kubeconfig, "{}", text(&joined.stderr));
        let version = setup.kubectl(&["--gateway", "auto"], &["get", "--raw", "/version"]).run().unwrap();
        assert_eq!(version.code(), Some(0), "{}", text(&version.stderr));
    }
    assert_eq!(setup.api.connections().len(), 1);
    // By its path it works for anything.
    let direct = navicert_testkit::Program::new(kubectl()).arguments(["get", "--raw", "/version"]);
    assert_eq!(direct.variable("KUBECONFIG", kubeconfig).run().unwrap().code(), Some(0));
    // Commands with other settings do not join.
    for flags in [
        &["--read-only", "--gateway", "auto"][..],
        &["--gateway", "own"],
        &["--gateway", "auto", "--as", "bob"],
    ] {
        let arguments = [&["run"], flags, &["--", "/bin/sh", "-c", "echo $KUBECONFIG"]].concat();
        let own = setup.navicert(&arguments).run().unwrap();
        assert_ne!(text(&own.stdout).trim(), kubeconfig, "{flags:?}");
    }
    running.signal("TERM");
    assert_eq!(wait::blocking(running.wait()).code(), Some(0));
    assert!(setup.left_behind().is_empty());
    let alone = setup.kubectl(&["--gateway", "auto"], &["get", "--raw", "/version"]).run().unwrap();
    assert_eq!(alone.code(), Some(0), "without one it opens its own");
}

// As for root, after `su`, in cron jobs and containers: no XDG_RUNTIME_DIR. A command that has one finds the gateway too.
#[test]
fn commands_join_a_gateway_that_has_no_runtime_directory() {
    let Some(other) = Other::find() else { return };
    let setup = Setup::new();
    other.own(&setup);
    let gateway = other.navicert(&setup, &["gateway"]).start_running().unwrap();
    let told = wait::blocking(gateway.wait_for_output("kubeconfig\n"));
    let kubeconfig = told.trim();
    let id = navicert_testkit::Program::new("id").arguments(["-u", "nobody"]).run().unwrap();
    let own = format!("/navicert-{}/", text(&id.stdout).trim());
    assert!(kubeconfig.contains(&own), "{kubeconfig}");
    let joining = ["run", "--gateway", "auto", "--", "/bin/sh", "-c", "echo $KUBECONFIG"];
    for runtime in [None, Some(setup.dir.path().join("runtime"))] {
        let mut command = other.navicert(&setup, &joining);
        if let Some(runtime) = runtime {
            command = command.variable("XDG_RUNTIME_DIR", runtime);
        }
        let joined = command.run().unwrap();
        assert_eq!(text(&joined.stdout).trim(), kubeconfig, "{}", text(&joined.stderr));
    }
    gateway.signal("TERM");
    assert_eq!(wait::blocking(gateway.wait()).code(), Some(0));
    assert!(!std::path::Path::new(kubeconfig).exists());
}

#[test]
fn commands_cannot_impersonate_through_an_impersonating_gateway() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let get = ["get", "--raw", "/version"];
    let as_bob = setup.kubectl(&["--as", "bob"], &get).run().unwrap();
    assert_eq!(as_bob.code(), Some(0), "{}", text(&as_bob.stderr));
    let requests = setup.api.requests();
    assert_eq!(requests.last().unwrap().header_values("impersonate-user"), ["bob"]);
    let escaping = setup.kubectl(&["--as", "bob"], &[&get[..], &["--as", "root"]].concat()).run().unwrap();
    assert_eq!(escaping.code(), Some(1));
    assert!(text(&escaping.stderr).contains("impersonation is not allowed"), "{}", text(&escaping.stderr));
    let own = setup.kubectl(&[], &[&get[..], &["--as", "root"]].concat()).run().unwrap();
    assert_eq!(own.code(), Some(0), "{}", text(&own.stderr));
    assert_eq!(setup.api.requests().last().unwrap().header_values("impersonate-user"), ["root"]);
    assert_eq!(setup.api.requests().len(), 2);
}

#[test]
fn gateway_prints_its_address_as_json() {
    let setup = Setup::new();
    let running = setup.navicert(&["gateway", "--read-only", "-o", "json"]).start_running().unwrap();
    let told = wait::blocking(running.wait_for_output("}\n"));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    output_schema::check_value("gateway", &told).unwrap();
    assert_eq!(told["readOnly"], true);
    assert!(told["server"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    assert!(std::fs::metadata(told["kubeconfig"].as_str().unwrap()).is_ok());
    running.signal("INT");
    assert_eq!(wait::blocking(running.wait()).code(), Some(0));
    assert!(setup.left_behind().is_empty());
}

// Commands can use every credential navicert-client supports: here a token, a token file and an exec plugin.
#[test]
fn tokens_and_plugins_work_as_certificates_do() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.accept_token("canary-token", "bob", &[]);
    let dir = setup.dir.path();
    std::fs::write(dir.join("token"), "canary-token\n").unwrap();
    let credential = "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"canary-token\"}}";
    std::fs::write(dir.join("credential"), credential).unwrap();
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/cat", "interactiveMode": "Never",
        "args": [dir.join("credential")],
    });
    let config = std::fs::read_to_string(dir.join("config")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    for user in
        [json!({"token": "canary-token"}), json!({"tokenFile": dir.join("token")}), json!({"exec": exec})]
    {
        config["users"][0]["user"] = user.clone();
        std::fs::write(dir.join("config"), config.to_string()).unwrap();
        let script = format!("{} get --raw /version; cat $KUBECONFIG; env", kubectl().display());
        let outcome = setup.shell(&script).run().unwrap();
        let seen = text(&outcome.stdout);
        assert!(
            outcome.code() == Some(0) && seen.contains("gitVersion"),
            "{user}: {}",
            text(&outcome.stderr)
        );
        assert!(!seen.contains("canary-token"), "{user}: {seen}");
        let requests = setup.api.requests();
        assert_eq!(requests.last().unwrap().header("authorization"), Some("Bearer canary-token"), "{user}");
    }
}
