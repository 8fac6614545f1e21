//! Reads a PIN on a pseudo-terminal and checks the terminal's output.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use navicert_signer::pin::{PinError, PinPrompt, PinProvider as _, TerminalPin};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

/// A pseudo-terminal: the controlling end, the path, and the other end, held open as a shell does.
fn terminal() -> (File, PathBuf, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = PathBuf::from(ptsname(&master, Vec::new()).unwrap().into_string().unwrap());
    let held = File::options().read(true).write(true).open(&path).unwrap();
    (File::from(master), path, held)
}

/// Requests a PIN, waits for the prompt, types the input, and returns everything the terminal displayed.
fn ask(typed: &[u8]) -> (Result<String, PinError>, String) {
    let (mut screen, path, held) = terminal();
    let request = PinPrompt { token: "my \u{1b}[31mtoken".to_owned(), last_try: true };
    let asked = std::thread::spawn(move || {
        TerminalPin::with_path(path).request_pin(&request).map(|pin| pin.expose().clone())
    });
    let mut shown = Vec::new();
    while !shown.ends_with(b": ") {
        let mut piece = [0; 64];
        let count = screen.read(&mut piece).unwrap();
        shown.extend(piece.iter().take(count));
    }
    screen.write_all(typed).unwrap();
    let answer = asked.join().unwrap();
    assert!(tcgetattr(&held).unwrap().local_modes.contains(LocalModes::ECHO), "echo is back on");
    // Marks the end of the output.
    (&held).write_all(b"END").unwrap();
    while !shown.ends_with(b"END") {
        let mut piece = [0; 64];
        let count = screen.read(&mut piece).unwrap();
        shown.extend(piece.iter().take(count));
    }
    (answer, String::from_utf8(shown).unwrap())
}

#[test]
fn reads_typed_pin_without_echo() {
    let (pin, shown) = ask(b"canary-4711\n");
    assert_eq!(pin.unwrap(), "canary-4711");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("PIN for the token") && shown.contains("last try"), "{shown}");
    assert!(shown.contains("my U+001B[31mtoken"), "control characters in a label are escaped: {shown}");
}

#[test]
fn empty_input_is_not_a_pin() {
    assert_eq!(ask(b"\n").0, Err(PinError::Empty));
    assert_eq!(ask(b"\x04").0, Err(PinError::Cancelled));
}

#[test]
fn interrupt_cancels_and_restores_the_echo() {
    assert_eq!(ask(b"\x03").0, Err(PinError::Cancelled));
    let (cancelled, shown) = ask(b"canary\x03");
    assert_eq!(cancelled, Err(PinError::Cancelled));
    assert!(!shown.contains("canary"), "{shown}");
}
