//! Paths in a kubeconfig: lexical cleaning, and resolution relative to the kubeconfig file.
// C130–C134

/// Cleans a path lexically, without file system access: removes `.`, `x/..` and duplicate separators.
///
/// The empty path becomes `.`, as in Go, because resolved paths are compared with kubectl's output.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Resolves the path of a kubeconfig field. `directory` is the absolute directory of the kubeconfig file.
///
/// Empty and absolute paths are unchanged.
// C130
pub(super) fn resolve(path: &str, directory: &str) -> String {
    if path.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        clean(&format!("{directory}/{path}"))
    }
}

/// The same for `exec.command`: a bare name is looked up in `PATH` later.
// C131
pub(super) fn resolve_command(command: &str, directory: &str) -> String {
    if command.contains('/') { resolve(command, directory) } else { command.to_owned() }
}

/// The parent directory of an absolute path.
pub(super) fn parent_directory(file: &str) -> String {
    match file.rsplit_once('/') {
        Some(("", _)) | None => "/".to_owned(),
        Some((directory, _)) => clean(directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_is_lexical() {
        for (path, cleaned) in [
            ("", "."),
            ("/", "/"),
            ("a//b/./c/", "a/b/c"),
            ("a/../..", ".."),
            ("../../a", "../../a"),
            ("/../a", "/a"),
            ("/a/b/../../..", "/"),
            ("./p", "p"),
            ("a/b/../c", "a/c"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }

    #[test]
    fn only_commands_with_a_separator_are_relative_to_the_file() {
        // C131
        for (command, resolved) in [
            ("p", "p"),
            ("./p", "/k/p"),
            ("bin/p", "/k/bin/p"),
            ("../p", "/p"),
            ("/usr/bin/p", "/usr/bin/p"),
            ("", ""),
        ] {
            assert_eq!(resolve_command(command, "/k"), resolved, "{command}");
        }
    }

    #[test]
    fn fields_are_relative_to_the_file_unless_empty_or_absolute() {
        // C130
        for (path, resolved) in [("", ""), ("/a/../b", "/a/../b"), ("ca.crt", "/k/ca.crt"), ("./../t", "/t")]
        {
            assert_eq!(resolve(path, "/k"), resolved, "{path}");
        }
        assert_eq!(parent_directory("/a"), "/");
        assert_eq!(parent_directory("/a/b/c"), "/a/b");
    }
}
