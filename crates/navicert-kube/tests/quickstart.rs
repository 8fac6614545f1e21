//! The program of docs/quickstart/rust.md is the example, and it prints the user's name.

#[path = "../examples/quickstart.rs"]
#[expect(dead_code, reason = "the example has a main function")]
mod quickstart;

use navicert_client::ConfigOptions;
use navicert_testkit::{ApiServer, Ca, Kubeconfig};

#[test]
fn page_shows_the_example_as_it_is() {
    let page = include_str!("../../../docs/quickstart/rust.md");
    let example = include_str!("../examples/quickstart.rs");
    let shown = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let (_, code) = example.split_once("\n\nuse ").unwrap();
    assert_eq!(shown.strip_prefix("use ").unwrap(), code);
}

#[tokio::test]
async fn example_prints_the_name_of_the_user() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("token", "ann", &[]);
    let path = Kubeconfig::new(api.url()).ca(&ca).token("token").write(dir.path().join("config"));
    let config = ConfigOptions::new([("PATH", "/usr/bin:/bin")].into_iter().collect(), "/");
    let client = navicert_kube::from_config(config.kubeconfig(&path).resolve().unwrap()).unwrap();
    assert_eq!(quickstart::user_name(client).await.unwrap(), "ann");
}
