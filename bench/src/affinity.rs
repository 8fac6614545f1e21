//! Keeps the bench and every process it started on one processor while a row is measured.
//!
//! Rows that send one request at a time never have two sides at work at once. On two processors their figure is mostly how
//! long the kernel takes to wake an idle one, which has two values on the same machine (19 and 97 µs were seen) and says
//! nothing about either side. On one processor the figure is the work and the switches between processes.

use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::fault::Fault;

/// Every thread that was moved and where it may run otherwise; dropping it moves them back.
pub(crate) struct OneProcessor {
    moved: Vec<(Pid, CpuSet)>,
}

impl OneProcessor {
    /// Moves this process and its descendants to the last processor that this process may use. Threads and processes that
    /// they start later inherit it.
    pub(crate) fn hold() -> Result<Self, Fault> {
        let allowed = sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).ok_or("no processor")?;
        let mut only = CpuSet::new();
        only.set(last);
        let mut held = OneProcessor { moved: Vec::new() };
        // Until a pass finds nothing to move: a thread that was not moved yet may have started another one meanwhile.
        while held.move_all(&only)? {}
        Ok(held)
    }

    /// Whether any thread had to be moved.
    fn move_all(&mut self, only: &CpuSet) -> Result<bool, Fault> {
        let moved_before = self.moved.len();
        for thread in threads_of_tree(std::process::id())? {
            // A thread may end between being listed and being moved.
            if let Ok(before) = sched_getaffinity(Some(thread))
                && before != *only
                && sched_setaffinity(Some(thread), only).is_ok()
            {
                self.moved.push((thread, before));
            }
        }
        Ok(self.moved.len() > moved_before)
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        for (thread, before) in &self.moved {
            let _ = sched_setaffinity(Some(*thread), before);
        }
    }
}

/// The threads of a process and of all its descendants.
fn threads_of_tree(root: u32) -> Result<Vec<Pid>, Fault> {
    let (mut threads, mut processes) = (Vec::new(), vec![root]);
    while let Some(process) = processes.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for task in tasks {
            let path = task?.path();
            let number = path.file_name().and_then(|name| name.to_str()).ok_or("an unnamed thread")?;
            threads.push(Pid::from_raw(number.parse()?).ok_or("a thread without a number")?);
            let children = fs::read_to_string(path.join("children")).unwrap_or_default();
            for child in children.split_whitespace() {
                processes.push(child.parse()?);
            }
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_every_thread_on_one_processor_and_lets_go() {
        std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap();
            let held = OneProcessor::hold().unwrap();
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            let inherited = std::thread::spawn(|| sched_getaffinity(None).unwrap().count());
            assert_eq!(inherited.join().unwrap(), 1);
            drop(held);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        })
        .join()
        .unwrap();
    }
}
