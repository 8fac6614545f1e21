//! Everything kubectl does, through the gateway.

use navicert_testkit::cli::tools;
use navicert_testkit::{Pod, Tunnel, wait};
use serde_json::json;

use super::setup::{Setup, text};

#[test]
fn get_and_version_go_through_with_the_users_certificate() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.add_pod("web", false);
    let outcome = setup.kubectl(&[], &["get", "--raw", "/version"]).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stderr));
    assert!(text(&outcome.stdout).contains("v1.34.0"));
    let outcome = setup.kubectl(&[], &["get", "pods", "-o", "name"]).run().unwrap();
    assert_eq!(
        (outcome.code(), text(&outcome.stdout)),
        (Some(0), "pod/web\n".to_owned()),
        "{}",
        text(&outcome.stderr)
    );
    setup.assert_all_as_ann();
    assert!(setup.left_behind().is_empty());
}

#[test]
fn a_watch_shows_events_as_they_come() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let pod = setup.api.add_pod("web", false);
    let running = setup.kubectl(&[], &["get", "pods", "--watch", "-o", "name"]).start_running().unwrap();
    wait::blocking(async {
        running.wait_for_output("pod/web").await;
        pod.events.wait_for_opened(1).await;
        for number in 1..=3 {
            let name = format!("new-{number}");
            let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}});
            pod.events.event(&json!({"type": "ADDED", "object": object}));
            running.wait_for_output(&format!("pod/{name}")).await;
        }
        running.signal("TERM");
        pod.events.wait_for_closed(1).await;
    });
    setup.assert_all_as_ann();
}

#[test]
fn logs_follow() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let pod = setup.api.add_pod("web", false);
    let running = setup.kubectl(&[], &["logs", "-f", "web"]).start_running().unwrap();
    wait::blocking(async {
        pod.log.wait_for_opened(1).await;
        for line in ["first line", "second line"] {
            pod.log.bytes(format!("{line}\n"));
            running.wait_for_output(line).await;
        }
        pod.log.finish();
        assert_eq!(running.wait().await.code(), Some(0));
    });
    setup.assert_all_as_ann();
}

#[test]
fn exec_runs_a_command_with_and_without_standard_input() {
    let Some(_) = tools::kubectl() else { return };
    for stdin in [false, true] {
        let setup = Setup::new();
        let pod = setup.api.add_pod("web", stdin);
        let flags: &[&str] =
            if stdin { &["exec", "-i", "web", "--", "cat"] } else { &["exec", "web", "--", "date"] };
        let program = setup.kubectl(&[], flags);
        let outcome = if stdin { program.stdin("typed\n") } else { program }.run().unwrap();
        let expected = if stdin { "hello from web\ntyped\n" } else { "hello from web\n" };
        assert_eq!(
            (outcome.code(), text(&outcome.stdout)),
            (Some(0), expected.to_owned()),
            "{}",
            text(&outcome.stderr)
        );
        wait::blocking(pod.exec.wait_for_closed(1));
        setup.assert_all_as_ann();
    }
}

/// What a command in a pod prints, on this path of the pod's.
fn plays(setup: &Setup, path: &str, stdin: bool, stdout: Vec<u8>) -> Tunnel {
    let tunnel = Tunnel::spdy_exec(stdin, stdout);
    let response = tunnel.answer().header("x-stream-protocol-version", "v4.channel.k8s.io");
    setup.api.answer(&format!("/api/v1/namespaces/default/pods/web/{path}"), response);
    tunnel
}

#[test]
fn attach_shows_what_the_container_prints() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.add_pod("web", false);
    let attached = plays(&setup, "attach", false, b"up and running\n".to_vec());
    let outcome = setup.kubectl(&[], &["attach", "web"]).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stderr));
    assert!(text(&outcome.stdout).contains("up and running\n"), "{}", text(&outcome.stdout));
    wait::blocking(attached.wait_for_closed(1));
    setup.assert_all_as_ann();
}

#[test]
fn files_are_copied_out_of_a_pod_and_into_it() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.add_pod("web", false);
    let dir = setup.dir.path();
    std::fs::create_dir(dir.join("pod")).unwrap();
    let content = "a line of a report\n".repeat(5_000);
    std::fs::write(dir.join("pod/report"), &content).unwrap();
    // In a pod, tar writes to standard output; so does ours.
    let tar =
        navicert_testkit::Program::new("tar").arguments(["cf", "-", "report"]).directory(&dir.join("pod"));
    let _ = plays(&setup, "exec", false, tar.run().unwrap().stdout);
    let out = setup.kubectl(&[], &["cp", "web:report", "copied"]).run().unwrap();
    assert_eq!(out.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(std::fs::read_to_string(dir.join("copied")).unwrap(), content);
    // On the way in, kubectl first looks whether there is a directory of that name.
    let (looked, received) = (Tunnel::spdy_exec(false, ""), Tunnel::spdy_exec(true, ""));
    let far_end = received.clone();
    setup.api.answer_with("/api/v1/namespaces/default/pods/web/exec", move |request| {
        let reads = request.query().is_some_and(|query| query.contains("stdin=true"));
        let tunnel = if reads { &far_end } else { &looked };
        tunnel.answer().header("x-stream-protocol-version", "v4.channel.k8s.io")
    });
    let into = setup.kubectl(&[], &["cp", "copied", "web:report"]).run().unwrap();
    assert_eq!(into.code(), Some(0), "{}", text(&into.stderr));
    let sent = String::from_utf8_lossy(&received.received()).into_owned();
    assert!(sent.contains(&content), "{} bytes arrived", sent.len());
    setup.assert_all_as_ann();
}

#[test]
fn a_port_is_forwarded() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let pod = setup.api.add_pod("web", false);
    let running = setup.kubectl(&[], &["port-forward", "web", ":80"]).start_running().unwrap();
    let told = wait::blocking(running.wait_for_output(" -> 80"));
    Pod::answers_through(&told);
    running.signal("INT");
    wait::blocking(pod.port_forward.wait_for_closed(1));
    setup.assert_all_as_ann();
}

// Requests that change something are rejected, and kubectl shows why.
#[test]
fn read_only_gateway_allows_only_reads() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.add_pod("web", false);
    let look = setup.kubectl(&["--read-only"], &["get", "pods", "-o", "name"]).run().unwrap();
    assert_eq!(
        (look.code(), text(&look.stdout)),
        (Some(0), "pod/web\n".to_owned()),
        "{}",
        text(&look.stderr)
    );
    for arguments in
        [&["delete", "pod", "web"][..], &["exec", "web", "--", "date"], &["port-forward", "web", ":80"]]
    {
        let refused = setup.kubectl(&["--read-only"], arguments).run().unwrap();
        assert_eq!(refused.code(), Some(1), "{arguments:?}");
        assert!(text(&refused.stderr).contains("read-only"), "{arguments:?}: {}", text(&refused.stderr));
    }
    let methods: Vec<String> =
        setup.api.requests().iter().map(|request| request.method.to_string()).collect();
    assert!(methods.iter().all(|method| method == "GET"), "{methods:?}");
}

// C443: the error message shown by kubectl.
#[test]
fn kubectl_shows_why_the_api_server_is_unreachable() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.refuse_connections();
    let outcome = setup.kubectl(&[], &["get", "--raw", "/version"]).run().unwrap();
    assert_eq!(outcome.code(), Some(1));
    let told = text(&outcome.stderr);
    assert!(told.contains("failed to reach the API server") && told.contains("refused"), "{told}");
}
