//! `navicert completions SHELL`: a completion script on standard output. In bash, zsh and fish, `--context`, `--cluster` and
//! `--user` complete the names in the kubeconfig: their scripts run the hidden verb `complete-names`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use navicert_client::ConfigOptions;
use navicert_client::kubeconfig::KubeconfigSources;

use crate::args::{CompleteNamesArgs, NameKind, definition};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Options that take a name of the kubeconfig, and the list that has it.
const NAME_OPTIONS: [(&str, &str); 3] = [("context", "contexts"), ("cluster", "clusters"), ("user", "users")];

/// Prints the script.
pub(crate) fn run(shell: Shell, output: &mut Output) -> Result<Exit, Failure> {
    output.bytes(&script(shell))?;
    Ok(Exit::Done)
}

/// Prints the names of a list in the kubeconfig, one per line. Errors print nothing: they would spoil the command line.
pub(crate) fn names(
    args: &CompleteNamesArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let file = kubeconfig_flag(&args.words, environment.home.as_deref());
    let (variable, home) = (environment.kubeconfig.as_deref(), environment.home.as_deref());
    let sources = KubeconfigSources::locate(file.as_deref(), variable, home);
    let options = ConfigOptions::new(navicert_plugin::Environment::empty(), &environment.current_dir);
    let Ok(merged) = options.sources(sources).load() else {
        return Ok(Exit::Done);
    };
    let config = merged.config;
    let names: Vec<String> = match args.kind {
        NameKind::Contexts => config.contexts.iter().map(|entry| entry.name.clone()).collect(),
        NameKind::Clusters => config.clusters.iter().map(|entry| entry.name.clone()).collect(),
        NameKind::Users => config.users.iter().map(|entry| entry.name.clone()).collect(),
    };
    let printable = names.iter().filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
    output.text(&printable.map(|name| format!("{name}\n")).collect::<String>())?;
    Ok(Exit::Done)
}

/// The value of `--kubeconfig` among the words typed so far, as the shell would expand it.
fn kubeconfig_flag(words: &[OsString], home: Option<&Path>) -> Option<PathBuf> {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut found = None;
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("--kubeconfig", value)) => found = Some(value),
            // bash splits a word at `=`.
            _ if word == "--kubeconfig" => found = words.find(|word| *word != "="),
            _ => {}
        }
    }
    let found = found.filter(|value| !value.is_empty())?;
    Some(match (found.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(found),
    })
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden_verbs(&definition()), "navicert", &mut script);
    match (String::from_utf8(script), shell) {
        (Ok(text), Shell::Bash) => with_bash_names(&text).into_bytes(),
        (Ok(text), Shell::Zsh) => with_zsh_names(&text).into_bytes(),
        (Ok(text), Shell::Fish) => with_fish_names(&text).into_bytes(),
        (Ok(text), _) => text.into_bytes(),
        (Err(error), _) => error.into_bytes(),
    }
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

/// bash splits words at colons, which names such as an ARN contain: the pieces are joined to find the option before
/// them, and candidates lose what bash takes for an earlier word.
const BASH_JOIN: &str = r#"
    local joined="${cur}" index=$((COMP_CWORD - 1))
    while ((index > 0)) && [[ "${joined}" == :* || "${COMP_WORDS[index]}" == *: ]]; do
        joined="${COMP_WORDS[index]}${joined}"
        index=$((index - 1))
    done
    prev="${COMP_WORDS[index]}"
"#;

const BASH_NAMES: &str = r#"_navicert_names() {
    local name earlier="" IFS=$'\n'
    if [[ "${joined}" != "${cur}" ]]; then
        earlier="${joined%"${joined##*:}"}"
    fi
    COMPREPLY=()
    for name in $("$1" complete-names "$2" -- "${COMP_WORDS[@]}" 2>/dev/null); do
        if [[ "${name}" == "${joined}"* ]]; then
            name="${name#"${earlier}"}"
            if [[ "${name}" == *[[:space:]]* ]]; then
                printf -v name %q "${name}"
            fi
            COMPREPLY+=("${name}")
        fi
    done
}

"#;

fn with_bash_names(script: &str) -> String {
    const FILES: &str = "COMPREPLY=($(compgen -f \"${cur}\"))";
    let script = script.replacen("    prev=\"$3\"\n", &format!("    prev=\"$3\"{BASH_JOIN}"), 1);
    let (mut text, mut selects_cluster, mut list) = (BASH_NAMES.to_owned(), false, None);
    for line in script.split_inclusive('\n') {
        let content = line.trim();
        if content.starts_with("opts=") {
            // `--user` of `cel eval` is a file.
            selects_cluster = content.contains(" --context ");
        }
        match list.filter(|_| content == FILES) {
            Some(list) => text.push_str(&line.replace(FILES, &format!("_navicert_names \"$1\" {list}"))),
            None => text.push_str(line),
        }
        let option = content.strip_prefix("--").and_then(|rest| rest.strip_suffix(')'));
        let names = NAME_OPTIONS.iter().find(|(name, _)| option == Some(*name) && selects_cluster);
        list = names.map(|(_, list)| *list);
    }
    text
}

/// `_arguments` passes options for `compadd` in front of the list's name.
const ZSH_NAMES: &str = r#"_navicert_names() {
    local -a names
    names=(${(f)"$(_call_program names navicert complete-names ${@[-1]} -- ${(q)words})"})
    compadd "${@[1,-2]}" -a names
}

"#;

fn with_zsh_names(script: &str) -> String {
    let mut script = script.replacen(
        "if [ \"$funcstack[1]\" = \"_navicert\" ]",
        &format!("{ZSH_NAMES}if [ \"$funcstack[1]\" = \"_navicert\" ]"),
        1,
    );
    for (option, list) in NAME_OPTIONS {
        let is_of_option = |line: &&str| line.starts_with(&format!("'--{option}=["));
        let is_context = |line: &&str| option == "context" && line.starts_with("'::examined -- Context ");
        let changed = script.split_inclusive('\n').map(|line| {
            let takes_name = is_of_option(&line) || is_context(&line);
            match line.strip_suffix(":_default' \\\n").filter(|_| takes_name) {
                Some(before) => format!("{before}:_navicert_names {list}' \\\n"),
                None => line.to_owned(),
            }
        });
        script = changed.collect();
    }
    script
}

fn with_fish_names(script: &str) -> String {
    let call = |list: &str| format!("-f -a \"(navicert complete-names {list} -- (commandline -opc))\"");
    let mut script = script.to_owned();
    for (option, list) in NAME_OPTIONS {
        let takes_name = |line: &str| line.contains(&format!(" -l {option} -d ")) && line.ends_with(" -r\n");
        let changed = script.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
            Some(before) if takes_name(line) => format!("{before} {}\n", call(list)),
            _ => line.to_owned(),
        });
        script = changed.collect();
    }
    // `navicert doctor CONTEXT`
    let doctor = "complete -c navicert -n \"__fish_navicert_using_subcommand doctor\"";
    format!("{script}{doctor} {}\n", call("contexts"))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

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
        assert_eq!(hidden, ["gateway-guard", "tls-verify", "request-info", "complete-names"]);
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            // The scripts call one of them, and a flag ends with the name of another.
            let offered = ["navicert complete-names", "\"$1\" complete-names", "insecure-skip-tls-verify"]
                .iter()
                .fold(script.clone(), |script, text| script.replace(text, ""));
            for name in &hidden {
                assert!(!offered.contains(name.as_str()), "{shell} offers {name}");
            }
            for name in visible.iter().map(String::as_str).chain(["--output", "--version", "--help"]) {
                // fish names long options without their dashes.
                assert!(script.contains(name.trim_start_matches('-')), "{shell} does not offer {name}");
            }
        }
    }

    #[test]
    fn every_option_that_takes_a_name_of_the_kubeconfig_completes_it() {
        let mut built = definition();
        built.build();
        let mut commands = vec![built];
        let mut expected = 0;
        while let Some(command) = commands.pop() {
            let context = command.get_arguments().filter(|argument| argument.get_long() == Some("context"));
            expected += context.count();
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(expected >= 9, "{expected}");
        let count = |shell, text: &str| String::from_utf8(script(shell)).unwrap().matches(text).count();
        assert_eq!(count(Shell::Bash, "_navicert_names \"$1\" contexts"), expected);
        // zsh and fish also complete the argument of `doctor`.
        assert_eq!(count(Shell::Zsh, ":_navicert_names contexts' \\\n"), expected + 1);
        assert_eq!(count(Shell::Fish, "complete-names contexts"), expected + 1);
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(count(shell, "clusters") > 0 && count(shell, "users") > 0, "{shell}");
        }
    }

    #[test]
    fn kubeconfig_option_is_found_among_the_words() {
        let find = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            kubeconfig_flag(&words, Some(Path::new("/home/ann")))
        };
        for (line, expected) in [
            ("navicert doctor --kubeconfig a.yaml --context", Some("a.yaml")),
            ("navicert doctor --kubeconfig=~/a.yaml", Some("/home/ann/a.yaml")),
            ("navicert doctor --kubeconfig = b.yaml", Some("b.yaml")),
            ("navicert doctor --kubeconfig a --kubeconfig b", Some("b")),
            ("navicert doctor --context x", None),
            ("navicert doctor --kubeconfig", None),
        ] {
            assert_eq!(find(line), expected.map(PathBuf::from), "{line}");
        }
    }
}
