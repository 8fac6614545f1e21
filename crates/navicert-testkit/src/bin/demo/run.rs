//! The scene about `navicert run`: kubectl works with ann's certificate, and nobody can read her key.

use std::path::{Path, PathBuf};

use navicert_testkit::{ApiServer, Ca, Program};
use serde_json::json;

use super::{Stage, write};

/// Tells it.
pub(super) fn tell(stage: &Stage) -> Result<(), String> {
    let ca = Ca::new("demo");
    let api = ApiServer::start(&ca);
    api.add_pod("web", false);
    let ann = ca.client("ann").organization("developers").issue().write_to(stage.folder.path(), "ann");
    write(&stage.folder.path().join("demo-ca.crt"), &ca.pem())?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "demo",
        "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "ann"}}],
        "clusters": [{"name": "demo", "cluster": {"server": api.url(), "certificate-authority": "demo-ca.crt"}}],
        "users": [{"name": "ann", "user": {"client-certificate": ann.certificate, "client-key": ann.key}}],
    });
    write(&stage.folder.path().join("demo.yaml"), &config.to_string())?;

    stage.scene("A command uses a key and never sees it: its kubeconfig leads to a gateway that has the key.");
    println!("$ export KUBECONFIG=demo.yaml\n");
    let shown = "grep -v -e token -e certificate $KUBECONFIG";
    run(stage, &[], &["sh", "-c", shown], 0)?;
    let Some(kubectl) = kubectl() else {
        println!("(kubectl is not in target/tools, so this scene is short; `make tools` installs it)\n");
        return Ok(());
    };
    let kubectl = kubectl.to_string_lossy();
    run(stage, &[], &[&kubectl, "get", "pods", "-o", "name"], 0)?;
    stage.scene("An agent may look, and change nothing.");
    run(stage, &["--read-only"], &[&kubectl, "delete", "pod", "web"], 1)?;
    let requests = api.requests();
    let by_ann = requests.iter().all(|request| {
        let client = request.client.as_ref().is_some_and(|client| client.common_name == "ann");
        client && request.header("authorization").is_none()
    });
    if !by_ann {
        return Err("a request came without ann's certificate".to_owned());
    }
    println!("(the API server saw {} requests, all by ann's certificate, none with a token)\n", requests.len());
    Ok(())
}

/// `navicert run [flags] -- COMMAND`; a program is shown by its name.
fn run(stage: &Stage, flags: &[&str], command: &[&str], expected: i32) -> Result<(), String> {
    let name = |word: &&str| match Path::new(word).file_name() {
        Some(name) if word.starts_with('/') => name.to_string_lossy().into_owned(),
        _ if word.contains('$') => format!("'{word}'"),
        _ => (*word).to_owned(),
    };
    let words: Vec<String> =
        ["navicert", "run"].iter().chain(flags).chain(&["--"]).chain(command).map(name).collect();
    let program = Program::new(&stage.navicert)
        .arguments(["run", "--kubeconfig", "demo.yaml"])
        .arguments(flags)
        .arguments(["--"])
        .arguments(command);
    stage.show(&words.join(" "), &program, expected)
}

/// Debian's kubectl, where `make tools` puts it.
fn kubectl() -> Option<PathBuf> {
    let kubectl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/usr/bin/kubectl");
    kubectl.canonicalize().ok()
}
