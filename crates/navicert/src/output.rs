//! Output of the verbs: results on standard output, errors and warnings on standard error.

use std::io::{self, Write};

use anstream::AutoStream;
use serde_json::Value;

use crate::args::Format;
use crate::exit::Exit;

pub(crate) mod snippet;

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A message for standard error that names the file, the field and the fix.
    Message { exit: Exit, text: String },
    /// The verb has already printed the errors.
    AlreadyReported(Exit),
    /// The reader of standard output closed it.
    OutputClosed,
}

impl Failure {
    /// An input file is invalid.
    pub(crate) fn bad_input(text: impl Into<String>) -> Self {
        Failure::Message { exit: Exit::BadInput, text: text.into() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::bad_input(format!("failed to write to standard output: {error}")),
        }
    }
}

/// The process's output streams.
pub(crate) struct Output {
    format: Format,
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
}

impl Output {
    /// Standard output and error, coloured only on terminals.
    pub(crate) fn new(format: Format) -> Self {
        Output { format, out: AutoStream::auto(io::stdout()), err: AutoStream::auto(io::stderr()) }
    }

    /// Whether `-o json` was requested.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints a result as text.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Prints a result as bytes, without stripping anything.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Prints a result as indented JSON.
    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        self.text(&escaped(&format!("{value:#}\n")))
    }

    /// Prints one result line of a `--jsonl` batch.
    pub(crate) fn line(&mut self, value: &Value) -> Result<(), Failure> {
        self.text(&escaped(&format!("{value}\n")))
    }

    /// Prints an error.
    pub(crate) fn error(&mut self, text: &str) {
        self.note(&format!("{}error:{} {text}", style::ERROR, style::END));
    }

    /// Prints a warning.
    pub(crate) fn warning(&mut self, text: &str) {
        self.note(&format!("{}warning:{} {text}", style::WARNING, style::END));
    }

    /// Replaces the current line of the terminal on standard error; empty text clears it.
    pub(crate) fn progress(&mut self, text: &str) {
        let _ = write!(self.err, "\r\u{1b}[K{text}");
        let _ = self.err.flush();
    }

    /// Prints a formatted block on standard error, such as an annotated snippet.
    pub(crate) fn note(&mut self, text: &str) {
        // A closed standard error leaves no place to report the failure.
        let _ = writeln!(self.err, "{text}");
    }
}

/// Escapes DEL in JSON text, because stripping colours removes it. DEL can only occur inside a JSON string.
fn escaped(json: &str) -> String {
    json.replace('\u{7f}', "\\u007f")
}

/// ANSI colours; `anstream` strips them if the stream is not a terminal.
pub(crate) mod style {
    pub(crate) const ERROR: &str = "\u{1b}[1;31m";
    pub(crate) const GOOD: &str = "\u{1b}[1;32m";
    pub(crate) const FAINT: &str = "\u{1b}[2m";
    pub(crate) const WARNING: &str = "\u{1b}[1;33m";
    pub(crate) const END: &str = "\u{1b}[0m";
}
