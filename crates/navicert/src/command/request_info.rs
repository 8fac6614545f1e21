//! `navicert request-info --jsonl`: interprets requests as kube-apiserver does, for tests that compare the two.

use navicert_server::report::request_info_line;

use super::batch::process_lines;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Interprets every line of standard input.
pub(crate) fn run(output: &mut Output) -> Result<Exit, Failure> {
    process_lines(request_info_line, output)
}
