//! Memory, environment, arguments and children of a running process. Linux only; reading a non-dumpable process needs
//! root.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};

/// One process, by its number.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use navicert_testkit::cli::process::Process;
///
/// let known = String::from("a value that this process holds");
/// assert!(Process(std::process::id()).shows(known.as_bytes()).unwrap());
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Process(pub u32);

/// What is read at a time.
const READ_CHUNK_BYTES: usize = 1 << 20;

impl Process {
    /// Everything it can write to: heap, stacks, data. Pages that were never touched are left out.
    ///
    /// # Errors
    /// If the process is gone, or does not let us look.
    pub fn memory(self) -> io::Result<Vec<u8>> {
        let maps = fs::read_to_string(self.file("maps"))?;
        let mut file = fs::File::open(self.file("mem"))?;
        let mut all = Vec::new();
        for (mut start, end) in maps.lines().filter_map(writable) {
            while start < end {
                let wanted =
                    usize::try_from(end - start).map_or(READ_CHUNK_BYTES, |left| left.min(READ_CHUNK_BYTES));
                let mut piece = vec![0; wanted];
                // Some regions, such as kernel pages, cannot be read; they hold no secrets of the process.
                let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read(&mut piece));
                let Ok(read @ 1..) = read else { break };
                if piece[..read].iter().any(|byte| *byte != 0) {
                    all.extend_from_slice(&piece[..read]);
                }
                start += read as u64;
            }
        }
        Ok(all)
    }

    /// Its environment, the variables one after another.
    ///
    /// # Errors
    /// If the process is gone, or does not let us look.
    pub fn environment(self) -> io::Result<Vec<u8>> {
        fs::read(self.file("environ"))
    }

    /// Its arguments, one after another.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn arguments(self) -> io::Result<Vec<u8>> {
        fs::read(self.file("cmdline"))
    }

    /// Whether memory, environment or arguments contain this.
    ///
    /// # Errors
    /// If the process is gone, or does not let us look.
    pub fn shows(self, wanted: &[u8]) -> io::Result<bool> {
        let places = [self.memory()?, self.environment()?, self.arguments()?];
        Ok(places.iter().any(|place| contains(place, wanted)))
    }

    /// How much of its memory is there, in KiB.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn resident(self) -> io::Result<u64> {
        let status = fs::read_to_string(self.file("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        number.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The processes it started and that still run.
    pub fn children(self) -> Vec<Process> {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.map(Process).filter(|process| process.parent() == Some(self.0)).collect()
    }

    fn parent(self) -> Option<u32> {
        let status = fs::read_to_string(self.file("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    }

    fn file(self, name: &str) -> String {
        format!("/proc/{}/{name}", self.0)
    }
}

/// Whether the second is somewhere in the first. Quick enough for the memory of a process.
///
/// # Panics
/// If what is looked for is so short that it would be found by chance.
pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    assert!(needle.len() >= 6, "{} bytes are found by chance", needle.len());
    let first = needle[0];
    let mut rest = haystack;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at..];
        if rest.starts_with(needle) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// Start and end of a region that a line of `maps` describes, if it can be written to.
fn writable(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    words.next()?.starts_with("rw").then_some((number(start)?, number(end)?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::cli::program::Program;
    use crate::wait;

    #[test]
    fn what_a_process_holds_is_found_and_what_it_does_not_is_not() {
        let script = "read line; held=$line; echo ready; read more";
        let program = Program::new("/bin/sh").arguments(["-c", script, "argument-314159"]);
        let running = program.variable("VARIABLE", "variable-271828").stdin("typed-161803\n").start_running();
        let running = running.unwrap();
        wait::blocking(running.wait_for_output("ready"));
        let process = Process(running.pid());
        for (there, wanted) in [
            (true, "typed-161803"),
            (true, "variable-271828"),
            (true, "argument-314159"),
            (false, "typed-161804"),
        ] {
            assert_eq!(process.shows(wanted.as_bytes()).unwrap(), there, "{wanted}");
        }
        assert!(contains(&process.memory().unwrap(), b"typed-161803"), "in its memory");
        assert!(Process(std::process::id()).children().contains(&process));
        assert!((100..1 << 20).contains(&process.resident().unwrap()));
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(Process(u32::MAX).memory().is_err());
    }
}
