//! PINs that are typed on a terminal while standard input is something else.

use std::io::Write as _;
use std::path::Path;

use navicert_testkit::cli::program::Running;
use navicert_testkit::cli::tools;
use navicert_testkit::net::http_server::HttpServerBuilder;
use navicert_testkit::{Cut, KeyKind, Program, TestContext, wait};

use super::{NAVICERT, PIN, Setup};

const PROMPT: &str = "PIN for the token";

/// Types a command into a shell on a terminal of its own, without a pinentry program unless one is given.
fn in_terminal(setup: &Setup, context: &TestContext, script: &str, pinentry: Option<&Path>) -> Running {
    let programs = Path::new(NAVICERT).parent().unwrap().display().to_string();
    let mut program = Program::new("script")
        .arguments(["-qec", "sh"])
        .arguments([context.home().join("typescript")])
        .own_environment()
        .variable("PATH", format!("{programs}:/usr/bin:/bin"))
        .variable("TERM", "xterm")
        .variable("HOME", context.home())
        .variable("SOFTHSM2_CONF", setup.hsm.configuration())
        .variable("NAVICERT_PKCS11_MODULE", setup.hsm.module())
        .variable("XDG_RUNTIME_DIR", context.home().join("run"))
        .stdin(format!("{script}\n"));
    if let Some(pinentry) = pinentry {
        program = program.variable("NAVICERT_PINENTRY", pinentry);
    }
    program.start_running().unwrap()
}

#[test]
fn pin_is_typed_on_the_terminal_while_standard_input_is_a_pipe() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let running = in_terminal(&setup, &context, "echo piped | navicert whoami", None);
    wait::blocking(running.wait_for_output(PROMPT));
    running.type_in(&format!("{PIN}\n"));
    let printed = wait::blocking(running.wait_for_output("username  ann"));
    assert!(!printed.contains(PIN), "{printed}");
}

#[test]
fn debians_pinentry_asks_on_the_terminal() {
    let Some(pinentry) = tools::installed("pinentry-tty", "pinentry-tty") else { return };
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let running = in_terminal(&setup, &context, "echo piped | navicert whoami", Some(&pinentry));
    wait::blocking(running.wait_for_output("PIN:"));
    running.type_in(&format!("{PIN}\n"));
    let printed = wait::blocking(running.wait_for_output("username  ann"));
    assert!(printed.contains("PIN for the token \"my token\"") && !printed.contains(PIN), "{printed}");
}

#[test]
fn interrupt_at_the_prompt_cancels() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let running = in_terminal(&setup, &context, "navicert run -- printf 'star%s' ted; stty -a", None);
    wait::blocking(running.wait_for_output(PROMPT));
    running.type_in("\u{3}");
    wait::blocking(running.wait_for_output("PIN entry cancelled"));
    let printed = wait::blocking(running.wait_for_output(" echo "));
    assert!(!printed.contains("started"), "{printed}");
}

// Over HTTP/1.1 each connection needs a signature; the PIN is entered once, before the command starts, and standard input
// is the command's.
#[test]
fn one_pin_serves_every_connection_of_a_run() {
    let Some(kubectl) = tools::kubectl() else { return };
    let Some(setup) = Setup::with_server(KeyKind::EcP256, HttpServerBuilder::http1_only) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let fifo = context.home().join("fifo");
    assert_eq!(Program::new("mkfifo").arguments([&fifo]).run().unwrap().code(), Some(0));
    let get = format!("{} get --raw /version", kubectl.canonicalize().unwrap().display());
    let command = format!("{get}; echo fir\"\"st; read line; {get}; echo got-$line");
    let script = format!("navicert run -- sh -c '{command}' <{}", fifo.display());
    let running = in_terminal(&setup, &context, &script, None);
    let mut input = std::fs::File::options().write(true).open(&fifo).unwrap();
    wait::blocking(running.wait_for_output(PROMPT));
    assert!(setup.api.connections().is_empty(), "the PIN comes first");
    running.type_in(&format!("{PIN}\n"));
    wait::blocking(running.wait_for_output("first"));
    let before = setup.api.connections().len();
    setup.api.cut_connections(Cut::Reset);
    input.write_all(b"piped\n").unwrap();
    let printed = wait::blocking(running.wait_for_output("got-piped"));
    assert_eq!(printed.matches("gitVersion").count(), 2, "{printed}");
    assert!(setup.api.connections().len() > before, "another connection");
    assert_eq!(printed.matches(PROMPT).count(), 1, "{printed}");
}
