//! `navicert exec-plugin`: for users and authors of credential plugins, and for tests that compare clients.

mod check;
pub(crate) mod keep;
mod pin;
mod terminal;

use navicert_client::report::exec_batch as batch;

use super::batch::process_lines;
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
        ExecPluginVerb::Keep(args) => keep::run(args, environment, output),
        ExecPluginVerb::Pin(args) => pin::run(args, environment, output),
        ExecPluginVerb::Decode(_) => process_lines(batch::decode_line, output),
        ExecPluginVerb::Info(_) => process_lines(batch::info_line, output),
    }
}
