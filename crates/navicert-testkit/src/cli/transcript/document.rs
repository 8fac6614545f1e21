//! A transcript as text: split into blocks, and put together again without losing a character.

use std::fmt;

/// A whole file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(super) enum Block {
    /// One line of prose, or of a code block that is not a transcript.
    Text(String),
    File(File),
    Console(Console),
}

/// A fence with `file=`.
#[derive(Debug)]
pub(super) struct File {
    pub(super) line: usize,
    pub(super) path: String,
    pub(super) mode: Option<u32>,
    fence: Fence,
    lines: Vec<String>,
}

/// A `console` fence.
#[derive(Debug)]
pub(super) struct Console {
    pub(super) merged: bool,
    pub(super) skipped: bool,
    pub(super) sessions: Vec<Session>,
    fence: Fence,
    /// The lines of a skipped fence, kept verbatim.
    lines: Vec<String>,
}

/// A command and what it should print.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) line: usize,
    /// What follows `$ `.
    pub(super) command: String,
    /// What follows `> ` on the lines below.
    pub(super) continuation: Vec<String>,
    pub(super) expected: Vec<String>,
}

#[derive(Debug)]
struct Fence {
    open: String,
    close: String,
}

impl Document {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.split_inclusive('\n').enumerate().map(|(index, line)| (index + 1, line));
        let mut blocks = Vec::new();
        while let Some((number, line)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                blocks.push(Block::Text(line.to_owned()));
                continue;
            };
            let mut inside = Vec::new();
            let close = loop {
                let (number_inside, inner) =
                    lines.next().ok_or(format!("{number}: a fence without an end"))?;
                if inner.trim_end() == ticks(line) {
                    break inner;
                }
                inside.push((number_inside, inner.trim_end_matches('\n').to_owned()));
            };
            let fence = Fence { open: line.to_owned(), close: close.to_owned() };
            let info = Info::parse(info.trim_start_matches('`'))
                .map_err(|problem| format!("{number}: {problem}"))?;
            blocks.extend(info.block(number, fence, inside)?);
        }
        Ok(Document { blocks })
    }
}

/// The backticks a fence begins with, and must end with.
fn ticks(line: &str) -> &str {
    let length = line.bytes().take_while(|byte| *byte == b'`').count();
    &line[..length]
}

/// The info string of a fence.
struct Info {
    console: bool,
    merged: bool,
    skipped: bool,
    file: Option<String>,
    mode: Option<u32>,
}

impl Info {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let mut info = Info { console: false, merged: false, skipped: false, file: None, mode: None };
        info.console = text.split_whitespace().next() == Some("console");
        if let Some((_, reason)) = text.split_once("skip=") {
            let quoted = reason.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            info.skipped = quoted.is_some_and(|reason| !reason.trim().is_empty());
            return if info.skipped {
                Ok(info)
            } else {
                Err("skip= needs a \"reason\", last on the line".to_owned())
            };
        }
        for word in text.split_whitespace().skip(1) {
            if word == "merged" {
                info.merged = true;
            } else if let Some(path) = word.strip_prefix("file=") {
                info.file = Some(path.to_owned());
            } else if let Some(mode) = word.strip_prefix("mode=") {
                info.mode =
                    Some(u32::from_str_radix(mode, 8).map_err(|_| format!("`{mode}` is no file mode"))?);
            } else if info.console && word.starts_with("enter=") {
                // What a reader types at a prompt; a transcript has no terminal, and its test answers otherwise.
            } else if info.console {
                return Err(format!("`{word}` means nothing behind `console`"));
            }
        }
        Ok(info)
    }

    fn block(self, line: usize, fence: Fence, inside: Vec<(usize, String)>) -> Result<Vec<Block>, String> {
        let plain =
            |inside: Vec<(usize, String)>| inside.into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        if self.console {
            let (sessions, lines) =
                if self.skipped { (Vec::new(), plain(inside)) } else { (sessions(inside)?, Vec::new()) };
            let console = Console { merged: self.merged, skipped: self.skipped, sessions, fence, lines };
            return Ok(vec![Block::Console(console)]);
        }
        if let Some(path) = self.file {
            return Ok(vec![Block::File(File { line, path, mode: self.mode, fence, lines: plain(inside) })]);
        }
        let texts = plain(inside).into_iter().map(|line| Block::Text(line + "\n"));
        Ok([Block::Text(fence.open)].into_iter().chain(texts).chain([Block::Text(fence.close)]).collect())
    }
}

fn sessions(inside: Vec<(usize, String)>) -> Result<Vec<Session>, String> {
    let mut sessions: Vec<Session> = Vec::new();
    for (number, line) in inside {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            sessions.push(Session { line: number, command, continuation: Vec::new(), expected: Vec::new() });
            continue;
        }
        let session = sessions.last_mut().ok_or(format!("{number}: a console fence begins with `$ `"))?;
        match line.strip_prefix("> ").or((line == ">").then_some("")) {
            Some(more) if session.expected.is_empty() && session.wants_more() => {
                session.continuation.push(more.to_owned());
            }
            _ => session.expected.push(line),
        }
    }
    Ok(sessions)
}

impl Session {
    /// Whether the command is not complete yet: it ends in a backslash or its here document is open.
    fn wants_more(&self) -> bool {
        let last = self.continuation.last().unwrap_or(&self.command);
        let whole =
            std::iter::once(&self.command).chain(&self.continuation).find_map(|line| here_document(line));
        match whole {
            Some(word) => last != word,
            None => last.ends_with('\\'),
        }
    }
}

/// The word behind `<<` at the end of a command line.
pub(super) fn here_document(line: &str) -> Option<&str> {
    let (_, word) = line.rsplit_once("<<")?;
    let simple = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    simple.then_some(word)
}

impl File {
    pub(super) fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

impl fmt::Display for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.blocks.iter().try_for_each(|block| write!(formatter, "{block}"))
    }
}

impl fmt::Display for Block {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Text(text) => formatter.write_str(text),
            Block::File(file) => write!(formatter, "{}{}{}", file.fence.open, file.text(), file.fence.close),
            Block::Console(console) => {
                formatter.write_str(&console.fence.open)?;
                console.lines.iter().try_for_each(|line| writeln!(formatter, "{line}"))?;
                console.sessions.iter().try_for_each(|session| write!(formatter, "{session}"))?;
                formatter.write_str(&console.fence.close)
            }
        }
    }
}

impl fmt::Display for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "$ {}", self.command)?;
        for line in &self.continuation {
            writeln!(formatter, "{}", format!("> {line}").trim_end())?;
        }
        self.expected.iter().try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_and_writing_preserves_every_character() {
        let text = "# Title\n\n```sh\n$ not ours\n```\n````text\n```console\n````\n```yaml file=a mode=600\nx: 1\n\n```\n\
                    ```console\n$ a <<E\n> 1\n>\n> E\n> out\n$ b \\\n> c\n[exit 1]\n```\n```console skip=\"no cluster\"\n$ d\n```\nend";
        assert_eq!(Document::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn continuation_ends_with_the_command_and_the_rest_is_output() {
        let document = Document::parse("```console\n$ a <<E\n> 1\n> E\n> out\n$ b\n> out\n```\n").unwrap();
        let [Block::Console(console)] = document.blocks.as_slice() else { panic!("one block: {document:?}") };
        assert_eq!(console.sessions[0].continuation, ["1", "E"]);
        assert_eq!(console.sessions[0].expected, ["> out"]);
        assert_eq!(console.sessions[1].expected, ["> out"]);
    }

    #[test]
    fn invalid_transcript_is_rejected_with_its_line() {
        for (text, message) in [
            ("a\n```console\n$ x\n", "2: a fence without an end"),
            ("```console\nx\n```\n", "2: a console fence begins with `$ `"),
            ("```console loud\n$ x\n```\n", "1: `loud` means nothing behind `console`"),
            ("```console skip=\"\"\n$ x\n```\n", "1: skip= needs a \"reason\", last on the line"),
            ("```sh file=a mode=9\n```\n", "1: `9` is no file mode"),
        ] {
            assert_eq!(Document::parse(text).unwrap_err(), message);
        }
    }
}
