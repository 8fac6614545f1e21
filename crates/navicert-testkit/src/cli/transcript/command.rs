//! A command line without a shell: words, quotes, variables in front, standard input; everything else is refused.

use std::iter::Peekable;
use std::str::Chars;

use super::document::here_document;

/// A command as written.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Command {
    pub(super) variables: Vec<(String, String)>,
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) stdin: Stdin,
}

#[derive(Debug, Default, Eq, PartialEq)]
pub(super) enum Stdin {
    #[default]
    Empty,
    File(String),
    Text(String),
}

/// Parses the line behind `$ ` and the lines behind `> `.
pub(super) fn parse(line: &str, continuation: &[String]) -> Result<Command, String> {
    let mut line = line.to_owned();
    let mut continuation = continuation.iter();
    while let Some(unfinished) = line.strip_suffix('\\') {
        let next = continuation.next().ok_or("the line ends in `\\`, and no `> ` line follows")?;
        line = format!("{unfinished}{next}");
    }
    let here = here_document(&line).map(str::to_owned);
    if let Some(word) = &here {
        line.truncate(line.len() - word.len() - 2);
    }
    let mut command = assemble(words(&line)?)?;
    if let Some(word) = here {
        let mut text: Vec<&str> = continuation.map(String::as_str).collect();
        if text.pop() != Some(word.as_str()) {
            return Err(format!("the here document does not end with `> {word}`"));
        }
        if command.stdin != Stdin::Empty {
            return Err("standard input is given twice".to_owned());
        }
        command.stdin = Stdin::Text(text.into_iter().flat_map(|line| [line, "\n"]).collect());
    }
    Ok(command)
}

/// A word, or the one operator there is.
#[derive(Debug, PartialEq)]
enum Word {
    /// The text, and whether it began without a quote (only then can it set a variable).
    Text(String, bool),
    Less,
}

fn assemble(words: Vec<Word>) -> Result<Command, String> {
    let mut command = Command::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word {
            Word::Less => match (words.next(), &command.stdin) {
                (Some(Word::Text(path, _)), Stdin::Empty) => command.stdin = Stdin::File(path),
                (Some(Word::Text(..)), _) => return Err("standard input is given twice".to_owned()),
                _ => return Err("`<` needs a file".to_owned()),
            },
            Word::Text(text, bare) => match assignment(&text, bare && command.program.is_empty()) {
                Some(variable) => command.variables.push(variable),
                None if command.program.is_empty() => command.program = text,
                None => command.arguments.push(text),
            },
        }
    }
    if command.program.is_empty() { Err("there is no command in it".to_owned()) } else { Ok(command) }
}

fn assignment(text: &str, possible: bool) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    (possible && is_name(name)).then(|| (name.to_owned(), value.to_owned()))
}

fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.chars().peekable();
    loop {
        while rest.next_if(|character| character.is_whitespace()).is_some() {}
        match rest.peek() {
            None => return Ok(words),
            Some('<') => {
                rest.next();
                words.push(Word::Less);
            }
            Some(first @ ('~' | '#')) => return Err(no_shell(*first)),
            Some(first) => {
                let bare = !matches!(first, '\'' | '"' | '\\');
                words.push(Word::Text(word(&mut rest)?, bare));
            }
        }
    }
}

fn word(rest: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut word = String::new();
    while let Some(character) = rest.next_if(|character| !character.is_whitespace() && *character != '<') {
        match character {
            '\'' => single_quoted(rest, &mut word)?,
            '"' => double_quoted(rest, &mut word)?,
            '\\' => word.push(rest.next().ok_or("a backslash with nothing behind it")?),
            '|' | '&' | ';' | '(' | ')' | '$' | '`' | '*' | '?' | '>' => return Err(no_shell(character)),
            plain => word.push(plain),
        }
    }
    Ok(word)
}

fn single_quoted(rest: &mut Peekable<Chars<'_>>, word: &mut String) -> Result<(), String> {
    loop {
        match rest.next().ok_or("a ' without an end")? {
            '\'' => return Ok(()),
            inside => word.push(inside),
        }
    }
}

fn double_quoted(rest: &mut Peekable<Chars<'_>>, word: &mut String) -> Result<(), String> {
    loop {
        match rest.next().ok_or("a \" without an end")? {
            '"' => return Ok(()),
            shell @ ('$' | '`') => return Err(no_shell(shell)),
            '\\' => match rest.next().ok_or("a \" without an end")? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            inside => word.push(inside),
        }
    }
}

fn no_shell(character: char) -> String {
    format!("`{character}` needs a shell, and a transcript has none; quote it if it is meant as it stands")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(line: &str) -> Command {
        parse(line, &[]).unwrap()
    }

    #[test]
    fn words_are_split_and_quotes_taken_as_a_shell_would() {
        let command = simple(r#"A=1 B="two words" prog a=b 'it'"'"'s' "say \"x\" \n" a\ b '' {.x[0]}"#);
        assert_eq!(command.variables, [("A".into(), "1".into()), ("B".into(), "two words".into())]);
        assert_eq!(command.program, "prog");
        assert_eq!(command.arguments, ["a=b", "it's", r#"say "x" \n"#, "a b", "", "{.x[0]}"]);
    }

    #[test]
    fn standard_input_comes_from_a_file_or_the_lines_below() {
        assert_eq!(simple("cat <in.txt").stdin, Stdin::File("in.txt".into()));
        assert_eq!(simple("cat -n < 'a b'").stdin, Stdin::File("a b".into()));
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(parse("cat <<E", &lines(&["1", "", "E"])).unwrap().stdin, Stdin::Text("1\n\n".into()));
        let both = parse("cat \\", &lines(&["-n <<END", "x", "END"])).unwrap();
        assert_eq!(
            (both.arguments.as_slice(), both.stdin),
            (&["-n".to_owned()][..], Stdin::Text("x\n".into()))
        );
        assert!(parse("cat <<E", &lines(&["1"])).is_err());
        assert!(parse("cat <a <<E", &lines(&["E"])).is_err());
    }

    #[test]
    fn whatever_needs_a_shell_is_refused_by_name() {
        for line in [
            "a | b", "a && b", "a; b", "a > f", "a $HOME", "a `b`", "a *", "a ~/x", "a # c", "a \"$X\"",
            "a &",
        ] {
            let problem = parse(line, &[]).unwrap_err();
            assert!(problem.contains("needs a shell"), "{line}: {problem}");
        }
        for line in ["", "A=1", "a 'x", "a \"x", "a \\", "a <"] {
            assert!(parse(line, &[]).is_err(), "{line}");
        }
    }
}
