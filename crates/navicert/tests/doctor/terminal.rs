//! A slow plugin on a terminal: it is announced, and Ctrl-C ends it.

use std::path::Path;

use navicert_testkit::cli::program::Running;
use navicert_testkit::cli::tools;
use navicert_testkit::{Program, TestContext, wait};

use super::plugins;
use super::setup::{KNOWN, Setup};

/// `navicert doctor` on a pseudo-terminal, with a plugin that waits until the test writes into `gate`; `None` without
/// `script`.
fn start(context: &TestContext) -> Option<Running> {
    let script = tools::installed("bsdutils", "script")?;
    let directory = context.directory();
    let made = Program::new("mkfifo").arguments([directory.join("gate")]).run().unwrap();
    assert_eq!(made.code(), Some(0));
    let command = format!("exec {} doctor", env!("CARGO_BIN_EXE_navicert"));
    let program = Program::new(script)
        .arguments(["-qec", &command, "/dev/null"])
        .own_environment()
        .variable("PATH", format!("{}:/usr/bin:/bin", context.home().display()))
        .variable("HOME", context.home())
        .variable("TERM", "dumb")
        .variable("KUBECONFIG", "config")
        .directory(&directory)
        .stdin(" ");
    Some(program.start_running().unwrap())
}

fn with_waiting_plugin(setup: &Setup) -> TestContext {
    let script = plugins::response(KNOWN).replace("echo run >> runs\n", "echo $$ > pid\nread line < gate\n");
    plugins::with_script(setup, &script)
}

#[tokio::test]
async fn slow_plugin_is_announced_on_a_terminal() {
    let setup = Setup::new().plugin("v1beta1");
    let context = with_waiting_plugin(&setup);
    let Some(running) = start(&context) else { return };
    let printed = running.wait_for_output("/login`… 1 s").await;
    assert!(printed.contains("running `"), "{printed}");
    std::fs::write(context.directory().join("gate"), "go on\n").unwrap();
    running.wait_for_output("no problems found").await;
}

#[tokio::test]
async fn interrupt_ends_doctor_and_its_plugin() {
    let setup = Setup::new().plugin("v1beta1");
    let context = with_waiting_plugin(&setup);
    let Some(running) = start(&context) else { return };
    running.wait_for_output("… 1 s").await;
    let plugin = std::fs::read_to_string(context.directory().join("pid")).unwrap();
    running.type_in("\u{3}");
    let outcome = running.wait().await;
    assert_ne!(outcome.code(), Some(0));
    let printed = String::from_utf8_lossy(&outcome.stdout);
    assert!(!printed.contains("to do:"), "{printed}");
    let process = Path::new("/proc").join(plugin.trim());
    let ended = async {
        while process.exists() {
            tokio::task::yield_now().await;
        }
    };
    wait::within("the plugin ends", ended).await;
}
