//! `navicert-image-provider`: a kubelet image credential plugin with its own provider configuration, re-read for every
//! request. Configure it once in the kubelet; change its file at any time.
//!
//! ```text
//! navicert-image-provider --config FILE --bin-dir DIR [--last-good FILE]
//! ```

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use navicert_image::author::read_request;
use navicert_image::shim::{Shim, answer, settings};
use navicert_plugin::ProcessRunner;
use navicert_types::{SystemClock, error_chain};

const USAGE: &str = "usage: navicert-image-provider --config FILE --bin-dir DIR [--last-good FILE]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "navicert-image-provider: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (shim, bin_dir) = arguments(env::args_os().skip(1))?;
    let (request, version) = read_request(&mut io::stdin().lock()).map_err(|error| error_chain(&error))?;
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let settings = settings(&bin_dir, environment(), runner, clock);
    let answer = answer(&shim, settings, &request, version).map_err(|error| error_chain(&error))?;
    let _ = io::stderr().write_all(answer.warning.as_bytes());
    io::stdout().write_all(answer.response.expose()).map_err(|error| error_chain(&error))
}

fn arguments(mut arguments: impl Iterator<Item = OsString>) -> Result<(Shim, PathBuf), String> {
    let (mut config, mut bin_dir, mut last_good) = (None, None, None);
    while let Some(flag) = arguments.next() {
        let target = match flag.to_str() {
            Some("--config") => &mut config,
            Some("--bin-dir") => &mut bin_dir,
            Some("--last-good") => &mut last_good,
            _ => return Err(USAGE.to_owned()),
        };
        *target = Some(PathBuf::from(arguments.next().ok_or(USAGE)?));
    }
    let (config, bin_dir) = (config.ok_or(USAGE)?, bin_dir.ok_or(USAGE)?);
    Ok((Shim { config, last_good }, bin_dir))
}

#[expect(clippy::disallowed_methods, reason = "plugins inherit this program's environment (I92)")]
fn environment() -> navicert_plugin::Environment {
    env::vars_os().collect()
}
