//! `navicert completions SHELL`: a completion script on standard output.

use crate::args::definition;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the script.
pub(crate) fn run(shell: clap_complete::Shell, output: &mut Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "navicert", &mut script);
    output.bytes(&script)?;
    Ok(Exit::Done)
}
