//! A kubeconfig of a thousand contexts, of which one is selected: the `navicert` process against Debian's kubectl.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use crate::needs::{self, Need};
use crate::race::{Contest, Fault, Race};

const CONTEXTS: usize = 1_000;

pub(super) fn race() -> Race {
    let what = "client: view --minify of 1,000 contexts, process included / Debian's kubectl";
    let prepare = || {
        let dir = Arc::new(tempfile::tempdir()?);
        fs::write(dir.path().join("config"), text()?)?;
        let ours = contestant(needs::built("navicert")?, "kubeconfig", Arc::clone(&dir));
        Ok(Contest::time(ours, contestant(needs::installed("kubectl")?, "config", dir)))
    };
    Race::new(what, 0.15, prepare).needs(&[Need::Installed("kubectl"), Need::Built("navicert")])
}

fn contestant(
    program: PathBuf,
    verb: &'static str,
    dir: Arc<tempfile::TempDir>,
) -> impl FnMut() -> Result<(), Fault> {
    move || {
        #[expect(
            clippy::disallowed_methods,
            reason = "the race is about whole programs, with nothing of ours around them"
        )]
        let mut command = std::process::Command::new(&program);
        let outcome = command
            .args([verb, "view", "--minify"])
            .env_clear()
            .env("HOME", dir.path())
            .env("KUBECONFIG", dir.path().join("config"))
            .stdin(Stdio::null())
            .output()?;
        // Both have to have found the one in the middle, and nothing else.
        let printed = String::from_utf8_lossy(&outcome.stdout);
        let is_right = printed.contains("https://server-500.example") && !printed.contains("server-499.");
        if outcome.status.success() && is_right { Ok(()) } else { Err(printed.into_owned().into()) }
    }
}

/// As installers write them: certificates and keys within. client-go loads the same text in the race.
pub(crate) fn text() -> Result<String, Fault> {
    let mut text = String::from(
        "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: context-500\nclusters:\n",
    );
    // What base64 of a certificate in PEM is as long as.
    let data = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t".repeat(40);
    for number in 0..CONTEXTS {
        writeln!(
            text,
            "- cluster:\n    certificate-authority-data: {data}\n    server: https://server-{number}.example:6443\n  name: cluster-{number}"
        )?;
    }
    text.push_str("contexts:\n");
    for number in 0..CONTEXTS {
        writeln!(
            text,
            "- context:\n    cluster: cluster-{number}\n    user: user-{number}\n    namespace: default\n  name: context-{number}"
        )?;
    }
    text.push_str("users:\n");
    for number in 0..CONTEXTS {
        writeln!(
            text,
            "- name: user-{number}\n  user:\n    client-certificate-data: {data}\n    client-key-data: {data}"
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_load_the_same_kubeconfig() {
        // The same sum is in peers/bench/kubeconfig_test.go.
        let agreed = "b75c4935a51f212f45e71be74bffae740bddec67dad0c481667c741e89dddad3";
        let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text().unwrap().as_bytes());
        let sum: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum, agreed, "the text has become another");
    }
}
