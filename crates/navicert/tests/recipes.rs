//! The recipes with programs of others and a real control plane (`make test-recipes`): helm, and an MCP server for an agent.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::path::Path;

use navicert_testkit::cli::tools;
use navicert_testkit::cli::transcript::check_file;
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Program, TestContext, wait};
use serde_json::{Value, json};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
const MCP_PAGE: &str = include_str!("../../../docs/recipes/mcp-server.md");

fn context(cluster: &Cluster) -> TestContext {
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    TestContext::new().program("navicert", NAVICERT).variable("KUBECONFIG", kubeconfig)
}

#[test]
fn commands_of_the_helm_recipe_print_what_the_page_shows() {
    let Some(helm) = tools::unpacked("helm", "bin/helm") else { return };
    let context = context(Cluster::shared()).program("helm", helm).filter("DEPLOYED: .*", "DEPLOYED: [TIME]");
    check_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes/helm.md"), context);
}

/// The first fence of this language behind a text of the page.
fn fence(behind: &str, language: &str) -> &'static str {
    let (_, text) = MCP_PAGE.split_once(behind).unwrap();
    let (_, text) = text.split_once(&format!("```{language}\n")).unwrap();
    text.split("```").next().unwrap().trim()
}

/// The test is the agent: it starts what the page's settings name, and calls a tool that reads and one that deletes.
#[test]
fn mcp_server_behind_the_gateway_reads_and_deletes_nothing() {
    let Some(programs) = tools::unpacked("kubernetes-mcp-server", "mcp/node_modules/.bin") else { return };
    let settings: Value = serde_json::from_str(fence("agent's settings", "json")).unwrap();
    let server = &settings["mcpServers"]["kubernetes"];
    assert_eq!(server["command"], "navicert");
    let arguments = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let cluster = Cluster::shared();
    let kubectl = |arguments: &[&str]| {
        let outcome =
            cluster.kubectl(cluster.admin_kubeconfig()).arguments(arguments).merged().run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stdout));
    };
    kubectl(&["create", "namespace", "shop"]);
    kubectl(&["create", "configmap", "greeting", "--from-literal=word=hello"]);
    let context = context(cluster);
    let agent = Program::new(NAVICERT)
        .arguments(arguments)
        .own_environment()
        .variable("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()))
        .variable("HOME", context.home())
        .variable("KUBECONFIG", cluster.admin_kubeconfig())
        .directory(&context.directory())
        .stdin(format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
            }})
        ))
        .start_running()
        .unwrap();
    let answer = |id: u32| {
        let start = format!("\"id\":{id},");
        let is_whole = |line: &&str| line.contains(&start) && line.ends_with('\n');
        wait::blocking(wait::within("an answer", async {
            loop {
                let printed = agent.output();
                if let Some(line) = printed.split_inclusive('\n').find(is_whole) {
                    return line.to_owned();
                }
                tokio::task::yield_now().await;
            }
        }))
    };
    let call = |id: u32, tool: &str, arguments: Value| {
        let request = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
        });
        agent.type_in(&format!("{request}\n"));
        answer(id)
    };
    answer(1);
    agent.type_in(&format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
    let listed = call(2, "namespaces_list", json!({}));
    assert!(listed.contains("kubernetes.io/metadata.name=shop"), "{listed}");
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "greeting"});
    let refused = call(3, "resources_delete", target);
    let shown = fence("the answer contains", "text");
    assert!(refused.contains(shown), "{refused}");
    kubectl(&["get", "configmap", "greeting"]);
    agent.close_input();
}
