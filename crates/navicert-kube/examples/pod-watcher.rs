//! Watches pods with the current context of a kubeconfig, and goes on while its credentials expire and rotate:
//! `cargo run -p navicert-kube --example pod-watcher -- ~/.kube/config`

use std::error::Error;
use std::path::PathBuf;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
use navicert_client::{exec, transport};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a program for people")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("a kubeconfig is needed")?;
    let client = client(&path)?;
    let pods = watcher(Api::<Pod>::all(client), watcher::Config::default());
    let mut pods = std::pin::pin!(pods.default_backoff().applied_objects());
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            event = pods.next() => match event {
                Some(Ok(pod)) => println!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
                // The watcher tries again by itself; what is told here is never a secret.
                Some(Err(error)) => println!("# {error}"),
                None => return Ok(()),
            },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a program reads its environment and hands it down")]
fn client(path: &std::path::Path) -> Result<kube::Client, Box<dyn Error>> {
    let sources = Sources::locate(Some(path), None, None);
    let here = std::env::current_dir()?;
    let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), &here, &Disk)?;
    let transport = transport::connect(
        &effective,
        &exec::Settings::default(),
        &exec::Surroundings::new(std::env::vars_os().collect()),
        &transport::Environment::read(|name| std::env::var(name).ok()),
    )?;
    let namespace = if effective.namespace.is_empty() { "default" } else { &effective.namespace };
    Ok(navicert_kube::client(transport, namespace))
}
