//! Finds installed PKCS#11 modules, to list the connected devices without configuration.

use std::path::{Path, PathBuf};

/// Well-known modules by file name: YubiKey, TPM, OpenSC, SoftHSM.
const MODULE_FILE_NAMES: [&str; 7] = [
    "libykcs11.so",
    "libykcs11.so.2",
    "libtpm2_pkcs11.so.1",
    "opensc-pkcs11.so",
    "softhsm/libsofthsm2.so",
    "pkcs11/libsofthsm2.so",
    "pkcs11/opensc-pkcs11.so",
];
const LIBRARY_DIRECTORIES: [&str; 7] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/opt/homebrew/lib",
    "/usr/lib/x86_64-linux-gnu/pkcs11",
];
/// The directories in which p11-kit registers modules.
const P11_KIT_DIRECTORIES: [&str; 2] = ["/usr/share/p11-kit/modules", "/etc/pkcs11/modules"];

/// The modules found at well-known paths and in p11-kit's registry, without duplicates.
pub fn known_modules() -> Vec<PathBuf> {
    let well_known = LIBRARY_DIRECTORIES
        .iter()
        .flat_map(|dir| MODULE_FILE_NAMES.iter().map(move |name| Path::new(dir).join(name)));
    let mut found: Vec<PathBuf> = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in
        well_known.chain(P11_KIT_DIRECTORIES.iter().flat_map(|dir| registered_modules(Path::new(dir))))
    {
        if let Ok(real) = path.canonicalize()
            && !seen.contains(&real)
        {
            seen.push(real);
            found.push(path);
        }
    }
    found
}

/// The absolute paths in `module:` lines of the directory's `.module` files.
fn registered_modules(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "module")).collect();
    files.sort();
    let texts = files.into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    texts.filter_map(|text| parse_module_path(&text)).collect()
}

fn parse_module_path(text: &str) -> Option<PathBuf> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("module:"))?.trim();
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_absolute_module_paths_from_p11_kit_files() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("a.module", "# a comment\n module: /usr/lib/a.so\npriority: 1\n");
        write("b.module", "module: relative.so\n");
        write("c.txt", "module: /usr/lib/c.so\n");
        assert_eq!(registered_modules(dir.path()), [Path::new("/usr/lib/a.so")]);
        assert!(registered_modules(&dir.path().join("absent")).is_empty());
    }

    #[test]
    fn finds_every_module_once() {
        let found = known_modules();
        let mut real: Vec<_> = found.iter().map(|path| path.canonicalize().unwrap()).collect();
        let count = real.len();
        real.sort();
        real.dedup();
        assert_eq!(real.len(), count, "{found:?}");
    }
}
