//! Where PKCS#11 modules usually are, for somebody who only wants to know what is plugged in.

use std::path::{Path, PathBuf};

/// Well-known modules by file name: YubiKey, TPM, OpenSC, SoftHSM.
const NAMES: [&str; 7] = [
    "libykcs11.so",
    "libykcs11.so.2",
    "libtpm2_pkcs11.so.1",
    "opensc-pkcs11.so",
    "softhsm/libsofthsm2.so",
    "pkcs11/libsofthsm2.so",
    "pkcs11/opensc-pkcs11.so",
];
const FOLDERS: [&str; 7] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/opt/homebrew/lib",
    "/usr/lib/x86_64-linux-gnu/pkcs11",
];
/// Where p11-kit's users register theirs.
const REGISTRIES: [&str; 2] = ["/usr/share/p11-kit/modules", "/etc/pkcs11/modules"];

/// The modules found at well-known places and in p11-kit's registry, each once.
pub fn known_modules() -> Vec<PathBuf> {
    let usual = FOLDERS.iter().flat_map(|folder| NAMES.iter().map(move |name| Path::new(folder).join(name)));
    let mut found: Vec<PathBuf> = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in usual.chain(REGISTRIES.iter().flat_map(|folder| registered(Path::new(folder)))) {
        if let Ok(real) = path.canonicalize()
            && !seen.contains(&real)
        {
            seen.push(real);
            found.push(path);
        }
    }
    found
}

/// The `module:` lines of the `.module` files in a folder that name an absolute path.
fn registered(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "module")).collect();
    files.sort();
    let texts = files.into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    texts.filter_map(|text| module_of(&text)).collect()
}

fn module_of(text: &str) -> Option<PathBuf> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("module:"))?.trim();
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_names_modules_by_absolute_path() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.module", "# a comment\n module: /usr/lib/a.so\npriority: 1\n");
        write("b.module", "module: relative.so\n");
        write("c.txt", "module: /usr/lib/c.so\n");
        assert_eq!(registered(folder.path()), [Path::new("/usr/lib/a.so")]);
        assert!(registered(&folder.path().join("absent")).is_empty());
    }

    #[test]
    fn every_module_is_found_once() {
        let found = known_modules();
        let mut real: Vec<_> = found.iter().map(|path| path.canonicalize().unwrap()).collect();
        let count = real.len();
        real.sort();
        real.dedup();
        assert_eq!(real.len(), count, "{found:?}");
    }
}
