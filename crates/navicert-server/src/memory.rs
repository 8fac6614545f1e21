//! Memory that this process may use: the least of its control groups' limits (version 1 or 2) and of the machine's
//! memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits::ServerLimits;

/// How much memory this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit, in bytes.
    pub bytes: u64,
    /// What sets it.
    pub source: MemorySource,
}

/// The limits of a server, and the memory they were derived from.
#[derive(Clone, Copy, Debug)]
pub struct EffectiveLimits {
    /// The limits.
    pub limits: ServerLimits,
    /// The memory, if it is known.
    pub memory: Option<MemoryLimit>,
}

/// What limits the memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemorySource {
    /// A control group, such as a container's.
    #[serde(rename = "cgroup")]
    ControlGroup,
    /// The memory of the machine.
    Machine,
}

impl MemorySource {
    /// Name for logs and output.
    pub fn name(self) -> &'static str {
        match self {
            MemorySource::ControlGroup => "cgroup",
            MemorySource::Machine => "machine",
        }
    }
}

/// Reads the limit from the file system below `root` (`/` except in tests); `None` where the system has no such files.
pub fn limit(root: &Path) -> Option<MemoryLimit> {
    let machine = machine_memory(root).map(|bytes| MemoryLimit { bytes, source: MemorySource::Machine });
    let group = control_group_limit(root)
        .map(|bytes| MemoryLimit { bytes, source: MemorySource::ControlGroup })
        // Without a limit, version 1 reports a number larger than any machine's memory.
        .filter(|group| machine.is_none_or(|machine| group.bytes < machine.bytes));
    group.or(machine)
}

/// `MemTotal` of `/proc/meminfo`.
fn machine_memory(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the process's control group and the groups above it.
fn control_group_limit(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (hierarchy, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        match (hierarchy, controllers) {
            ("0", "") => least(&root.join("sys/fs/cgroup"), path, "memory.max"),
            (_, controllers) if controllers.split(',').any(|controller| controller == "memory") => {
                least(&root.join("sys/fs/cgroup/memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// The least limit of a group and the groups above it. A container often sees its own group at the mount point, below a
/// path that does not exist for it.
fn least(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let group = mount.join(group.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|folder| folder.starts_with(mount)).map(PathBuf::from);
    groups.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       24682224 kB\nMemFree: 1 kB\n");

    fn read(files: &[(&str, &str)]) -> Option<(u64, &'static str)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        limit(root.path()).map(|limit| (limit.bytes, limit.source.name()))
    }

    #[test]
    fn reads_version_2() {
        let group = ("proc/self/cgroup", "0::/pod/container\n");
        let machine = Some((24_682_224 * 1024, "machine"));
        for (files, expected) in [
            (&[("sys/fs/cgroup/pod/container/memory.max", "268435456\n")][..], Some((268_435_456, "cgroup"))),
            (&[("sys/fs/cgroup/pod/container/memory.max", "max\n")], machine),
            (
                &[
                    ("sys/fs/cgroup/pod/container/memory.max", "max\n"),
                    ("sys/fs/cgroup/pod/memory.max", "1000000\n"),
                ],
                Some((1_000_000, "cgroup")),
            ),
            (&[("sys/fs/cgroup/memory.max", "2000000\n")], Some((2_000_000, "cgroup"))),
            (&[], machine),
        ] {
            assert_eq!(read(&[&[MACHINE, group], files].concat()), expected, "{files:?}");
        }
    }

    #[test]
    fn reads_version_1() {
        let group = ("proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/docker/4f\n1:name=systemd:/\n0::/x\n");
        let machine = Some((24_682_224 * 1024, "machine"));
        for (path, text, expected) in [
            ("docker/4f/memory.limit_in_bytes", "268435456\n", Some((268_435_456, "cgroup"))),
            ("docker/4f/memory.limit_in_bytes", "9223372036854771712\n", machine),
            ("memory.limit_in_bytes", "536870912\n", Some((536_870_912, "cgroup"))),
        ] {
            let path = format!("sys/fs/cgroup/memory/{path}");
            assert_eq!(read(&[MACHINE, group, (&path, text)]), expected, "{path}");
        }
    }

    #[test]
    fn no_files_are_no_limit() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("proc/meminfo", "nonsense")]), None);
    }
}
