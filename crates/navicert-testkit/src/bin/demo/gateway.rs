//! Demonstrates `navicert run`: a command uses a key without access to it.

use navicert_testkit::{ApiServer, Ca, Kubeconfig};

use super::{Demo, DemoError, write};

/// kubectl uses ann's certificate through the gateway, and never reads her key.
pub(super) fn run(demo: &Demo) -> Result<(), DemoError> {
    let ca = Ca::new("demo");
    let api = ApiServer::start(&ca);
    api.add_pod("web", false);
    let ann = ca.client("ann").organization("developers").issue().write_to(demo.dir.path(), "ann");
    write(&demo.dir.path().join("demo-ca.crt"), &ca.pem())?;
    let config = Kubeconfig::new(api.url())
        .names("demo", "demo", "ann")
        .ca_file("demo-ca.crt")
        .certificate(ann.certificate, ann.key);
    write(&demo.dir.path().join("demo.yaml"), &config.to_string())?;

    demo.scene(
        "A command uses a key and never sees it: its kubeconfig leads to a gateway that has the key.",
    )?;
    let shown = "grep -v -e token -e certificate $KUBECONFIG";
    demo.run_with("demo.yaml", &["run", "--", "sh", "-c", shown], 0)?;
    demo.run_with("demo.yaml", &["run", "--", "kubectl", "get", "pods", "-o", "name"], 0)?;
    demo.scene("An agent may look, and change nothing.")?;
    demo.run_with("demo.yaml", &["run", "--read-only", "--", "kubectl", "delete", "pod", "web"], 1)?;
    let requests = api.requests();
    let by_ann = requests.iter().all(|request| {
        let client = request.client.as_ref().is_some_and(|client| client.common_name == "ann");
        client && request.header("authorization").is_none()
    });
    if !by_ann {
        return Err("the API server received a request without ann's certificate".into());
    }
    show!(
        "(requests that the API server saw: {}; all with ann's certificate, none with a token)\n",
        requests.len()
    )
}
