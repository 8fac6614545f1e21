//! Descriptors that a process inherited without using them. A process that outlives the one that started it would keep
//! their pipes and locks open.

use std::{fs, io};

/// Closes every descriptor except standard input, output and error. Call it first in a process: it closes descriptors that
/// libraries have opened, too.
///
/// # Errors
/// The operating system does not list the descriptors.
pub fn close_inherited() -> io::Result<()> {
    // Listed first: the list itself is read through a descriptor.
    let names: Vec<_> = fs::read_dir("/dev/fd")?.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for descriptor in numbers.filter(|number| *number > 2) {
        // That of the list is closed already.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}
