//! Two kubeconfig files, merged and resolved: never panics, and the first file's entries win.

#![no_main]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use navicert_client::ConfigOptions;
use navicert_client::kubeconfig::{KubeconfigSources, MemoryFileSystem};

fuzz_target!(|parts: (Vec<u8>, Vec<u8>)| {
    let root = Path::new("/no-such-root");
    let paths = [PathBuf::from("first"), PathBuf::from("second")];
    let first = navicert_types::kubeconfig::decode(&parts.0).unwrap_or_default();
    let files =
        MemoryFileSystem::new(root, paths.iter().cloned().zip([parts.0, parts.1]).collect::<Vec<_>>());
    let options = ConfigOptions::new(std::iter::empty::<(String, String)>().collect(), root)
        .sources(KubeconfigSources::list(paths))
        .files(Arc::new(files));
    let merged = match options.load() {
        Ok(merged) => merged,
        Err(failed) => {
            assert!(failed.iter().next().is_some());
            failed.iter().for_each(|error| drop((error.to_string(), format!("{error:?}"))));
            return;
        }
    };
    for entry in &first.users {
        assert!(merged.user(&entry.name).is_some(), "every entry of the first file is kept");
    }
    let contexts: Vec<String> = merged.config.contexts.iter().map(|entry| entry.name.clone()).collect();
    for context in contexts.into_iter().take(8).chain([String::new()]) {
        let report = options.clone().context(context).report(&merged);
        let _ = (format!("{report:?}"), report.server(), report.credential_kinds());
        report.errors().iter().for_each(|error| drop((error.to_string(), error.help(), error.location())));
        report.warnings().iter().for_each(|warning| drop((warning.to_string(), warning.location())));
    }
});
