//! Shared by tests with hardware keys: the signer program, a pinentry program with a fixed PIN, and the kubeconfig that
//! `navicert signer list` prints.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use navicert_testkit::cli::sibling::PKCS11_SIGNER;

/// The signer's own program, which belongs to another crate.
pub(crate) fn signer() -> PathBuf {
    PKCS11_SIGNER.find_or_build()
}

/// A pinentry program that answers with this PIN, and leaves a line in `asked` of the same directory each time.
pub(crate) fn pinentry(dir: &Path, pin: &str) -> PathBuf {
    let path = dir.join("pinentry");
    let asked = dir.join("asked");
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\necho run >>'{}'\nprintf 'OK\\nD {pin}\\nOK\\n'\n",
        asked.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A kubeconfig and a kuberc in this home with what `signer list` printed, and nothing of a key's added.
pub(crate) fn paste(listed: &str, home: &Path, user: &str, server: &str, ca_pem: &str) {
    let (before, kuberc) = listed.split_once("  kuberc (allows it):\n").unwrap();
    let users = before.split_once("  kubeconfig:\n").unwrap().1;
    let dedent = |text: &str| {
        let lines = text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    };
    let kube = home.join(".kube");
    std::fs::create_dir_all(&kube).unwrap();
    std::fs::write(kube.join("ca.crt"), ca_pem).unwrap();
    let rest = format!(
        "clusters:\n- name: c\n  cluster: {{server: '{server}', certificate-authority: ca.crt}}\n\
         contexts:\n- name: x\n  context: {{cluster: c, user: {user}}}\ncurrent-context: x\n"
    );
    std::fs::write(kube.join("config"), format!("{}\n{rest}", dedent(users))).unwrap();
    std::fs::write(kube.join("kuberc"), dedent(kuberc)).unwrap();
}
