//! `navicert man`: manual pages, generated from the same definitions as `--help`.

use std::path::Path;

use crate::args::definition;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Writes every page into a directory, or prints the main page.
pub(crate) fn run(dir: Option<&Path>, output: &mut Output) -> Result<Exit, Failure> {
    match dir {
        Some(dir) => clap_mangen::generate_to(definition(), dir).map_err(|error| {
            Failure::bad_input(format!("failed to write manual pages to `{}`: {error}", dir.display()))
        })?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(definition())
                .render(&mut page)
                .map_err(|error| Failure::bad_input(format!("failed to render the manual page: {error}")))?;
            output.bytes(&page)?;
        }
    }
    Ok(Exit::Done)
}
