//! The controller: counts the entries of every ConfigMap that has the label, and writes the number into an annotation.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use navicert_client::Config;

/// The label of ConfigMaps to count, and the annotation with the number.
pub(crate) const LABEL: &str = "navicert.example/count";

/// Creates the client, which is the only difference from a plain kube-rs controller.
pub(crate) fn client(path: &Path) -> Result<Client, Box<dyn Error>> {
    Ok(navicert_kube::from_config(Config::from_kubeconfig(path)?)?)
}

/// Runs until `stop` completes, and reports every outcome.
pub(crate) async fn run(
    client: Client,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
    mut report: impl FnMut(Result<String, String>),
) {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let outcomes = Controller::new(maps, watcher::Config::default().labels(LABEL))
        .graceful_shutdown_on(stop)
        .run(count, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(client));
    let mut outcomes = std::pin::pin!(outcomes);
    while let Some(outcome) = outcomes.next().await {
        report(outcome.map(|(map, _)| map.name).map_err(|error| error.to_string()));
    }
}

async fn count(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let entries = map.data.as_ref().map_or(0, BTreeMap::len).to_string();
    if map.annotations().get(LABEL) != Some(&entries) {
        let patch = serde_json::json!({"metadata": {"annotations": {LABEL: entries}}});
        let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &map.namespace().unwrap_or_default());
        maps.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(Action::await_change())
}
