//! `navicert exec-plugin`: for people who write credential plugins, and for machines that compare clients.

mod check;
mod decode;
mod info;
mod lines;
mod terminal;

use crate::args::exec_plugin::ExecPluginVerb;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Does what the verb says.
pub(crate) fn run(
    verb: &ExecPluginVerb,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match verb {
        ExecPluginVerb::Check(args) => check::run(args, environment, output),
        ExecPluginVerb::Decode(_) => lines::answer_each(decode::answer, output),
        ExecPluginVerb::Info(_) => lines::answer_each(info::answer, output),
    }
}
