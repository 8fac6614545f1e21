//! Everything Debian's kubectl does, through the proxy.

use navicert_testkit::Pod;
use navicert_testkit::cli::tools;
use serde_json::json;

use super::setup::{Setup, text};

#[tokio::test(flavor = "multi_thread")]
async fn get_watch_and_logs_go_through_as_the_mapped_user() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let pod = setup.api.add_pod("web", false);
    let serving = setup.start(&[]).await;
    let outcome = setup.kubectl(&serving, &["get", "pods", "-o", "name"]).run().unwrap();
    assert_eq!(
        (outcome.code(), text(&outcome.stdout)),
        (Some(0), "pod/web\n".to_owned()),
        "{}",
        text(&outcome.stderr)
    );
    let watching =
        setup.kubectl(&serving, &["get", "pods", "--watch", "-o", "name"]).start_running().unwrap();
    watching.wait_for_output("pod/web").await;
    pod.events.wait_for_opened(1).await;
    for number in 1..=3 {
        let name = format!("new-{number}");
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}});
        pod.events.event(&json!({"type": "ADDED", "object": object}));
        watching.wait_for_output(&format!("pod/{name}")).await;
    }
    watching.signal("TERM");
    pod.events.wait_for_closed(1).await;
    let following = setup.kubectl(&serving, &["logs", "-f", "web"]).start_running().unwrap();
    pod.log.wait_for_opened(1).await;
    for line in ["first line", "second line"] {
        pod.log.bytes(format!("{line}\n"));
        following.wait_for_output(line).await;
    }
    pod.log.finish();
    assert_eq!(following.wait().await.code(), Some(0));
    setup.assert_all_as_ann();
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_and_port_forward_go_through_as_the_mapped_user() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let pod = setup.api.add_pod("web", true);
    let serving = setup.start(&[]).await;
    let outcome =
        setup.kubectl(&serving, &["exec", "-i", "web", "--", "cat"]).stdin("typed\n").run().unwrap();
    let expected = "hello from web\ntyped\n".to_owned();
    assert_eq!((outcome.code(), text(&outcome.stdout)), (Some(0), expected), "{}", text(&outcome.stderr));
    pod.exec.wait_for_closed(1).await;
    let forwarding = setup.kubectl(&serving, &["port-forward", "web", ":80"]).start_running().unwrap();
    let told = forwarding.wait_for_output(" -> 80").await;
    Pod::answers_through(&told);
    forwarding.signal("INT");
    pod.port_forward.wait_for_closed(1).await;
    setup.assert_all_as_ann();
    serving.end().await;
}

// S239: kubectl gets an error instead of silently acting as its own user.
#[tokio::test(flavor = "multi_thread")]
async fn impersonation_is_rejected_with_a_message() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    setup.api.add_pod("web", false);
    let serving = setup.start(&[]).await;
    let refused = setup.kubectl(&serving, &["get", "--raw", "/version", "--as", "admin"]).run().unwrap();
    assert_eq!(refused.code(), Some(1));
    assert!(text(&refused.stderr).contains("impersonation is not allowed"), "{}", text(&refused.stderr));
    assert_eq!(setup.api.requests().len(), 0);
    serving.end().await;
}
