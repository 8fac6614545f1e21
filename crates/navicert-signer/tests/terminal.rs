//! A PIN typed at a terminal: what it shows, and what it does not.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use navicert_signer::pin::{AskPin as _, PinError, Question, TerminalPin};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

/// A terminal: our end, its path, and its other end, held open as a shell would.
fn terminal() -> (File, PathBuf, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = PathBuf::from(ptsname(&master, Vec::new()).unwrap().into_string().unwrap());
    let held = File::options().read(true).write(true).open(&path).unwrap();
    (File::from(master), path, held)
}

/// Asks, waits for the question to appear, types the answer, and gives everything the terminal showed.
fn ask(typed: &[u8]) -> (Result<String, PinError>, String) {
    let (mut screen, path, held) = terminal();
    let question = Question { token: "my \u{1b}[31mtoken".to_owned(), last_try: true };
    let asked =
        std::thread::spawn(move || TerminalPin::at(path).ask(&question).map(|pin| pin.expose().clone()));
    let mut shown = Vec::new();
    while !shown.ends_with(b": ") {
        let mut piece = [0; 64];
        let count = screen.read(&mut piece).unwrap();
        shown.extend(piece.iter().take(count));
    }
    screen.write_all(typed).unwrap();
    let answer = asked.join().unwrap();
    assert!(tcgetattr(&held).unwrap().local_modes.contains(LocalModes::ECHO), "echo is back on");
    // A mark of our own ends what there is to read.
    (&held).write_all(b"END").unwrap();
    while !shown.ends_with(b"END") {
        let mut piece = [0; 64];
        let count = screen.read(&mut piece).unwrap();
        shown.extend(piece.iter().take(count));
    }
    (answer, String::from_utf8(shown).unwrap())
}

#[test]
fn what_is_typed_is_the_pin_and_is_not_shown() {
    let (pin, shown) = ask(b"canary-4711\n");
    assert_eq!(pin.unwrap(), "canary-4711");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("PIN for the token") && shown.contains("last try"), "{shown}");
    assert!(shown.contains("my U+001B[31mtoken"), "a token's label cannot paint the screen: {shown}");
}

#[test]
fn nothing_typed_is_no_pin() {
    assert_eq!(ask(b"\n").0, Err(PinError::Empty));
    assert_eq!(ask(b"\x04").0, Err(PinError::Cancelled));
}
