//! A kubeconfig of a thousand contexts: read, decoded, and the one in the middle resolved and checked.

use std::fs;

use navicert_client::kubeconfig::{KubeconfigSources, OsFileSystem, Overrides, select};

use super::Row;
use crate::client::a_thousand_contexts;
use crate::race::{Contestant, Fault};

pub(super) const ROWS: [Row; 1] = [("kubeconfig-load", load)];

fn load() -> Result<Contestant, Fault> {
    let dir = tempfile::tempdir()?;
    let sources = KubeconfigSources::Explicit(dir.path().join("config"));
    fs::write(dir.path().join("config"), a_thousand_contexts()?)?;
    Ok(Box::new(move || {
        let (_, effective) = select(&sources, &Overrides::default(), dir.path(), &OsFileSystem)?;
        let is_right = effective.cluster.server == "https://server-500.example:6443"
            && !effective.user.client_certificate_data.is_empty();
        if is_right { Ok(()) } else { Err(effective.cluster.server.into()) }
    }))
}
