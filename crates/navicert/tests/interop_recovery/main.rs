//! How soon tokens are accepted again after a rotation or an outage of their issuer: real providers, a real kube-apiserver, and
//! `navicert serve webhook` in both profiles side by side (`make interop`). Neither profile is later than kube-apiserver.
#![cfg(unix)]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

mod issuers;
mod sides;
mod situations;
mod table;

use navicert_testkit::Ca;
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::services::fault_proxy::KeysCaching;
use tokio::task::JoinSet;

use issuers::{Issuer, ProviderKind};
use sides::Sides;
use table::Table;

/// A lifetime of dex's keys that does not end during the test.
const NEVER: &str = "6h";

// S163–S170, H20–H22. Four issuers at once: those without a lifetime of keys go through one situation after the other, those
// whose keys may be cached for two minutes through rotations.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_accepted_no_later_than_by_kube_apiserver() {
    let ca = Ca::new("recovery");
    let starts = [
        Issuer::start(&ca, ProviderKind::Npm, KeysCaching::Removed, NEVER).await,
        Issuer::start(&ca, ProviderKind::Npm, KeysCaching::Fixed("max-age=120"), NEVER).await,
        Issuer::start(&ca, ProviderKind::Dex, KeysCaching::Removed, NEVER).await,
        Issuer::start(&ca, ProviderKind::Dex, KeysCaching::Forwarded, "1m").await,
    ];
    let [npm, npm_cached, dex, dex_cached] = starts;
    let issuers: Vec<&Issuer> = [&npm, &npm_cached, &dex, &dex_cached].into_iter().flatten().collect();
    if issuers.is_empty() {
        return; // reported as skipped
    }
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.unwrap();
    let sides = Sides::start(&cluster, &ca, &issuers).await;

    let mut running = JoinSet::new();
    for issuer in [npm, dex].into_iter().flatten() {
        let sides = sides.clone();
        running.spawn(async move { situations::faults(&issuer, &sides).await });
    }
    if let Some(issuer) = npm_cached {
        let sides = sides.clone();
        running.spawn(async move { situations::rotations_by_command(&issuer, &sides).await });
    }
    if let Some(issuer) = dex_cached {
        let sides = sides.clone();
        running.spawn(async move { situations::rotations_by_schedule(&issuer, &sides).await });
    }
    let mut table = Table::default();
    while let Some(rows) = running.join_next().await {
        table.extend(rows.unwrap());
    }
    table.print();
    table.assert_never_later();
}
