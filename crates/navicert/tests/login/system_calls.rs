//! What a call with a fresh session asks of the system.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_testkit::cli::system_calls::{SystemCalls, trace};

use super::{INFO_V1, Setup, output, token};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

// L302: LA3 of the specification.
#[test]
fn fresh_session_costs_one_file_and_no_socket_thread_or_lock() {
    let setup = Setup::new();
    // The certificate as a flag: a file of its own would be another file.
    let certificate = STANDARD.encode(std::fs::read(&setup.provider.ca_file).unwrap());
    let mut words = vec!["login".to_owned()];
    words.extend(setup.selection().into_iter().filter(|flag| !flag.starts_with("--certificate-authority=")));
    words.push(format!("--certificate-authority-data={certificate}"));
    words.push(format!("--password-file={}", setup.dir.path().join("password").display()));
    let mut first = setup.program(std::path::Path::new(NAVICERT));
    first.args(&words);
    let (code, _, stderr) = output(first);
    assert_eq!(code, Some(0), "{stderr}");
    let requests = setup.provider.requests();

    let printed = setup.dir.path().join("printed");
    let variables = [
        ("HOME", setup.dir.path().as_os_str()),
        ("KUBERNETES_EXEC_INFO", OsStr::from_bytes(INFO_V1.as_bytes())),
    ];
    let calls = |words: &[String]| -> SystemCalls {
        trace(NAVICERT, words, &variables, File::create(&printed).unwrap().into())
    };
    let cached = calls(&words);
    assert_eq!(cached.exit, 0);
    assert_eq!(token(&std::fs::read_to_string(&printed).unwrap()), setup.entry()["idToken"]);
    assert_eq!(setup.provider.requests(), requests);
    assert_eq!((cached.sockets(), cached.started_threads(), cached.locks()), (0, 0, 0), "{cached:?}");
    // What the loader opens, the same program opens without a session as well.
    let bare = calls(&["--version".to_owned()]);
    assert_eq!(bare.exit, 0);
    let (opened, loader) = (cached.opened_files(), bare.opened_files());
    assert!(loader > 0 && opened <= loader + 1, "{opened} files, {loader} without a session");
    // The counts are real: a login opens a socket.
    let renewed = calls(&[words, vec!["--force-refresh".to_owned()]].concat());
    assert_eq!(renewed.exit, 0);
    assert!(renewed.sockets() > 0 && renewed.locks() > 0, "{renewed:?}");
}
