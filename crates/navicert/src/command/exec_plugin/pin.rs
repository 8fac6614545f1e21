//! `navicert exec-plugin pin`: allows a plugin by its path and digest.

use navicert_client::edit::{AllowedProgram, variables_set_for};
use navicert_client::report::PinReport;
use navicert_plugin::Command;
use navicert_plugin::resolve::resolve;
use navicert_types::{error_chain, redact};

use crate::args::exec_plugin::PinArgs;
use crate::command::connect;
use crate::command::write_files::{self, Questions};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Writes the entry.
pub(super) fn run(args: &PinArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let (command, arguments) =
        args.command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let search_path = environment.variable("PATH");
    let program = resolve(command.as_ref(), search_path.as_deref())
        .map_err(|error| Failure::bad_input(error_chain(&error)))?;
    let kubeconfig = connect::load(&connect::located(args.write.kubeconfig.as_deref(), environment), output)?;
    let entry = AllowedProgram {
        args: arguments.to_vec(),
        env_names: variables_set_for(&program, &kubeconfig, &environment.inherited),
        ..AllowedProgram::pinned(&program)?
    };
    let questions = Questions::new(args.write.yes);
    let mut changes = write_files::kuberc(args.write.kuberc.as_deref(), environment)?;
    changes.allow(&entry, args.write.force)?;
    // A file that could be replaced between check and start is denied at every run.
    let command = Command::new(program.as_os_str(), environment.inherited.clone()).args(arguments);
    changes.policy()?.permit(command).map_err(|error| Failure::Message {
        exit: Exit::Denied,
        text: format!("the entry would not let it run: {}", redact::terminal(&error_chain(&error))),
    })?;
    let other_plugins = write_files::offer_plugins_in_use(
        &mut changes,
        &kubeconfig,
        args.write.add_plugins_in_use,
        questions,
        (environment, output),
    )?;
    let outcome = write_files::write(&[changes.finish()?], questions, output)?;
    if output.is_json() {
        let sha256 = entry.sha256.map(|digest| digest.to_string()).unwrap_or_default();
        let files = outcome.files;
        output.json(&PinReport { command: entry.command, sha256, other_plugins, files })?;
    } else {
        output.text(&outcome.text())?;
    }
    Ok(outcome.exit)
}
