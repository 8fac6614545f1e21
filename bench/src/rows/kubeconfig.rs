//! A kubeconfig of a thousand contexts: read, decoded, and the one in the middle resolved and checked.

use std::fs;

use navicert_client::ConfigOptions;
use navicert_plugin::Environment;

use super::Row;
use crate::client::a_thousand_contexts;
use crate::race::{Contestant, Fault};

pub(super) const ROWS: [Row; 1] = [("kubeconfig-load", load)];

fn load() -> Result<Contestant, Fault> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("config");
    fs::write(&path, a_thousand_contexts()?)?;
    let options = ConfigOptions::new(Environment::empty(), dir.path()).kubeconfig(&path);
    Ok(Box::new(move || {
        let _dir = &dir;
        let report = options.report(&options.load()?);
        let server = report.server().unwrap_or_default();
        let is_right =
            server == "https://server-500.example:6443" && report.credential_kinds().contains(&"cert");
        if is_right { Ok(()) } else { Err(server.into()) }
    }))
}
