//! Splits a command as a POSIX shell splits it into words, without expanding anything: quotes and backslashes only.
// L721

use thiserror::Error;

/// A command that cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid browser command `{command}`: {reason}")]
pub struct BrowserCommandError {
    pub(super) command: String,
    pub(super) reason: &'static str,
}

/// The words of a command; at least one.
pub(super) fn split(command: &str) -> Result<Vec<String>, BrowserCommandError> {
    let invalid = |reason| BrowserCommandError { command: command.to_owned(), reason };
    let mut words = Vec::new();
    // A word may be empty (`''`): whether one has begun is not the same as whether it has characters.
    let mut word: Option<String> = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(quoted) => word.push(quoted),
                        None => return Err(invalid("a single quote is not closed")),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('"') => break,
                        // Inside double quotes a backslash quotes these characters only.
                        Some('\\') => match characters.next() {
                            Some('\n') => {}
                            Some(quoted @ ('$' | '`' | '"' | '\\')) => word.push(quoted),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err(invalid("a double quote is not closed")),
                        },
                        Some(quoted) => word.push(quoted),
                        None => return Err(invalid("a double quote is not closed")),
                    }
                }
            }
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(quoted) => word.get_or_insert_default().push(quoted),
                None => return Err(invalid("it ends with a backslash")),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(invalid("it names no program")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_as_a_shell_does_and_expands_nothing() {
        for (command, words) in [
            ("firefox", &["firefox"][..]),
            ("  firefox \t -P  work\n", &["firefox", "-P", "work"]),
            ("firefox -P 'my work'", &["firefox", "-P", "my work"]),
            (r#"firefox -P "my work""#, &["firefox", "-P", "my work"]),
            (r"/opt/my\ browser/run", &["/opt/my browser/run"]),
            (r#"a b"c d"'e f'g"#, &["a", "bc de fg"]),
            (r#"a "" '' b"#, &["a", "", "", "b"]),
            (r#"a "\$HOME \"x\" \\ \n""#, &["a", r#"$HOME "x" \ \n"#]),
            (r"a '\n\'", &["a", r"\n\"]),
            (
                "a $HOME `id` $(id) ~ * ; | > #x",
                &["a", "$HOME", "`id`", "$(id)", "~", "*", ";", "|", ">", "#x"],
            ),
            ("a b\\\nc", &["a", "bc"]),
            ("open -a Firefox %u", &["open", "-a", "Firefox", "%u"]),
        ] {
            assert_eq!(split(command).unwrap(), words, "{command}");
        }
    }

    #[test]
    fn unfinished_commands_are_errors() {
        for command in ["", "  ", "''", "'' x", "a 'b", "a \"b", "a \"b\\", "a\\"] {
            assert!(split(command).is_err(), "{command}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec("[^\u{0}]{1,20}", 1..5)) {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&quoted.join(" ")).unwrap(), words);
        }
    }
}
