//! `navicert exec-plugin`: for authors of credential plugins, and for tests that compare clients.

mod check;
mod decode;
mod info;
pub(super) mod lines;
mod terminal;

use crate::args::exec_plugin::ExecPluginVerb;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(
    verb: &ExecPluginVerb,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match verb {
        ExecPluginVerb::Check(args) => check::run(args, environment, output),
        ExecPluginVerb::Decode(_) => lines::process_lines(decode::process, output),
        ExecPluginVerb::Info(_) => lines::process_lines(info::process, output),
    }
}
