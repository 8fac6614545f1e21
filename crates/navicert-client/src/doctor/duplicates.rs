//! Users and clusters that several files of `KUBECONFIG` define differently: the first file wins, silently.
// C123

use super::kubeconfig::quoted;
use super::report::DoctorStep;
use crate::kubeconfig::{KubeconfigFile, LoadedKubeconfig};

/// An entry that a later file defines differently.
pub(super) struct Duplicate {
    step: DoctorStep,
    name: String,
    /// The file whose entry is used, quoted.
    used: String,
    /// The first other file that has a different entry of that name, quoted.
    ignored: String,
}

/// Every user and cluster that a later file defines differently.
pub(super) fn find(loaded: &LoadedKubeconfig) -> Vec<Duplicate> {
    let users = differing(&loaded.files, DoctorStep::User, |file| {
        file.config.users.iter().map(|entry| (entry.name.as_str(), &entry.user)).collect()
    });
    let clusters = differing(&loaded.files, DoctorStep::Cluster, |file| {
        file.config.clusters.iter().map(|entry| (entry.name.as_str(), &entry.cluster)).collect()
    });
    users.into_iter().chain(clusters).collect()
}

fn differing<T: PartialEq>(
    files: &[KubeconfigFile],
    step: DoctorStep,
    entries: impl Fn(&KubeconfigFile) -> Vec<(&str, &T)>,
) -> Vec<Duplicate> {
    let mut first: Vec<(&str, &T, &KubeconfigFile)> = Vec::new();
    let mut found: Vec<Duplicate> = Vec::new();
    for file in files {
        for (name, entry) in entries(file) {
            match first.iter().find(|(other, ..)| *other == name) {
                None => first.push((name, entry, file)),
                Some((_, used, origin)) if *used != entry && !found.iter().any(|one| one.name == name) => {
                    let path = |file: &KubeconfigFile| quoted(&file.path.display().to_string());
                    let (used, ignored) = (path(origin), path(file));
                    found.push(Duplicate { step, name: name.to_owned(), used, ignored });
                }
                Some(_) => {}
            }
        }
    }
    found
}

/// Text and fix for the selected entry of this step, if another file defines it differently.
pub(super) fn warning(duplicates: &[Duplicate], step: DoctorStep, name: &str) -> Option<(String, String)> {
    let duplicate = duplicates.iter().find(|found| found.step == step && found.name == name)?;
    let (name, used, ignored) = (quoted(name), &duplicate.used, &duplicate.ignored);
    let kind = step.name();
    Some((
        format!("{kind} {name} of {used} is used; {ignored} defines it differently"),
        format!("remove or rename {kind} {name} in {used} or {ignored}: the first file in KUBECONFIG wins"),
    ))
}
