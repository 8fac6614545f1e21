//! `navicert completions SHELL`: a completion script on standard output.

use clap::Command;

use crate::args::definition;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the script.
pub(crate) fn run(shell: clap_complete::Shell, output: &mut Output) -> Result<Exit, Failure> {
    output.bytes(&script(shell))?;
    Ok(Exit::Done)
}

fn script(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden_verbs(&definition()), "navicert", &mut script);
    script
}

/// The same command line without its hidden verbs: `clap_complete` offers them, and a subcommand cannot be removed from a
/// `Command`. Only what a completion script shows is copied.
fn without_hidden_verbs(definition: &Command) -> Command {
    Command::new("navicert")
        // The text is never shown, but without a version there is no `--version`.
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(definition.get_arguments())
        .subcommands(definition.get_subcommands().filter(|verb| !verb.is_hide_set()))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use super::*;

    /// The names of all subcommands, by whether they are hidden.
    fn names(command: &Command, is_hidden: bool) -> Vec<String> {
        command
            .get_subcommands()
            .flat_map(|verb| {
                let own = (verb.is_hide_set() == is_hidden).then(|| verb.get_name().to_owned());
                own.into_iter().chain(names(verb, is_hidden))
            })
            .collect()
    }

    #[test]
    fn scripts_offer_every_verb_except_hidden_ones() {
        let definition = definition();
        let (hidden, visible) = (names(&definition, true), names(&definition, false));
        assert_eq!(hidden, ["gateway-guard"]);
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            for name in &hidden {
                assert!(!script.contains(name.as_str()), "{shell} offers {name}");
            }
            for name in visible.iter().map(String::as_str).chain(["--output", "--version", "--help"]) {
                // fish names long options without their dashes.
                assert!(script.contains(name.trim_start_matches('-')), "{shell} does not offer {name}");
            }
        }
    }
}
