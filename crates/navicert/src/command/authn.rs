//! `navicert authn`: checks authentication configurations and evaluates tokens as kube-apiserver does, or more strictly.

mod check;
mod diff;
mod eval;
mod explain;
mod fetch_once;
mod migrate;
mod online;
pub(crate) use online::fetch;
mod settings;
mod test;

use navicert_authn::batch;
use settings::AuthnSettings;

use super::batch::process_lines;
use crate::args;
use crate::args::authn::AuthnVerb;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(verb: &AuthnVerb, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    match verb {
        AuthnVerb::Check(args) if args.jsonl => {
            let settings = AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?;
            process_lines(|request| batch::check_line(request, settings.for_batch()), output)
        }
        AuthnVerb::Check(args) => check::run(args, environment, output),
        AuthnVerb::Eval(args) if args.jsonl => {
            let settings = AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?;
            process_lines(|request| batch::eval_line(request, settings.for_batch()), output)
        }
        AuthnVerb::Eval(args) => eval::run(args, environment, output),
        AuthnVerb::Explain(args) => explain::run(args, environment, output),
        AuthnVerb::Test(args) => test::run(args, output),
        AuthnVerb::Diff(args) => diff::run(args, output),
        AuthnVerb::Migrate(args) => migrate::run(args, output),
    }
}
