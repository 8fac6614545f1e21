//! The clients of other projects through the proxy. `make clients` installs them and runs these tests; a client that cannot be
//! installed is reported as skipped. (kube-rs has its test in `navicert-kube`, the only crate that names it.)

use std::path::{Path, PathBuf};

use navicert_testkit::cli::tools;
use navicert_testkit::{Pod, Program, Tunnel};
use serde_json::json;

use super::setup::{Serving, Setup};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve_proxy").join(name)
}

/// A pod whose commands are run over SPDY or a WebSocket, whichever is asked for.
fn pod(setup: &Setup) -> Pod {
    let pod = setup.api.add_pod("web", false);
    let (spdy, socket) = (pod.exec.clone(), Tunnel::web_socket_exec("hello from web\n"));
    setup.api.answer_with("/api/v1/namespaces/default/pods/web/exec", move |request| {
        match request.header("upgrade") {
            Some(protocol) if protocol.eq_ignore_ascii_case("websocket") => socket.web_socket(request),
            _ => spdy.answer(),
        }
    });
    pod
}

async fn goes_through(
    setup: &Setup,
    serving: Serving,
    pod: &Pod,
    program: Program,
    pods: &str,
    status: bool,
) {
    let running = program.start_running().unwrap();
    running.wait_for_output(pods).await;
    pod.events.wait_for_opened(1).await;
    let metadata = json!({"name": "new", "namespace": "default", "resourceVersion": "2"});
    let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata});
    pod.events.event(&json!({"type": "ADDED", "object": object}));
    running.wait_for_output("event new").await;
    running.wait_for_output("exec hello from web").await;
    if status {
        running.wait_for_output("status Success").await;
    }
    assert_eq!(running.wait().await.code(), Some(0));
    setup.assert_all_as_ann();
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the clients of other projects: `make clients`"]
async fn pythons_client_lists_watches_and_runs_a_command_over_a_web_socket() {
    let Some(python) = tools::client("kubernetes", "python/bin/python") else { return };
    let setup = Setup::new();
    let pod = pod(&setup);
    let serving = setup.start(&[]).await;
    let kubeconfig = setup.client_kubeconfig(&serving);
    let program = Program::new(python).arguments([script("client.py"), kubeconfig]);
    goes_through(&setup, serving, &pod, program, "pods ['web']", false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the clients of other projects: `make clients`"]
async fn nodes_client_lists_watches_and_runs_a_command_over_a_web_socket() {
    let Some(_) = tools::client("@kubernetes/client-node", "node/node_modules/@kubernetes/client-node")
    else {
        return;
    };
    let Some(node) = tools::installed("nodejs", "node") else { return };
    let Some(packages) = tools::client("@kubernetes/client-node", "node/node_modules") else { return };
    let setup = Setup::new();
    let pod = pod(&setup);
    let serving = setup.start(&[]).await;
    let kubeconfig = setup.client_kubeconfig(&serving);
    let program = Program::new(node).arguments([script("client.mjs"), kubeconfig, packages]);
    goes_through(&setup, serving, &pod, program, "pods web", true).await;
}
