//! What navicert prints: results on standard output, sentences on standard error, and how a verb fails.

use std::io::{self, Write};

use anstream::AutoStream;
use serde_json::Value;

use crate::args::Format;
use crate::exit::Exit;

pub(crate) mod snippet;

/// Why a verb could not finish.
#[derive(Debug)]
pub(crate) enum Failure {
    /// One sentence for standard error, naming file, field and way out.
    Sentence { exit: Exit, text: String },
    /// The verb has printed what is wrong already.
    Told(Exit),
    /// Whoever read our output has gone.
    OutputClosed,
}

impl Failure {
    /// A file given to us is not what it should be.
    pub(crate) fn bad_input(text: impl Into<String>) -> Self {
        Failure::Sentence { exit: Exit::BadInput, text: text.into() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::bad_input(format!("cannot write to standard output: {error}")),
        }
    }
}

/// Where results and sentences go.
pub(crate) struct Output {
    format: Format,
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
}

impl Output {
    /// Standard output and error; colours only where a person looks.
    pub(crate) fn new(format: Format) -> Self {
        Output { format, out: AutoStream::auto(io::stdout()), err: AutoStream::auto(io::stderr()) }
    }

    /// Whether a machine asked.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A result as text.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// A result as bytes, untouched.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// A result as indented JSON.
    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        self.text(&escaped(&format!("{value:#}\n")))
    }

    /// One line of a batch's answers.
    pub(crate) fn line(&mut self, value: &Value) -> Result<(), Failure> {
        self.text(&escaped(&format!("{value}\n")))
    }

    /// A sentence that stops us.
    pub(crate) fn error(&mut self, text: &str) {
        self.note(&format!("{}error:{} {text}", style::ERROR, style::END));
    }

    /// A sentence that does not.
    pub(crate) fn warning(&mut self, text: &str) {
        self.note(&format!("{}warning:{} {text}", style::WARNING, style::END));
    }

    /// A finished block for standard error, such as an annotated snippet.
    pub(crate) fn note(&mut self, text: &str) {
        // If standard error is gone there is nobody left to tell.
        let _ = writeln!(self.err, "{text}");
    }
}

/// JSON that nothing is taken out of on the way: where colours are removed, a DEL goes with them. It can only stand in a
/// string.
fn escaped(json: &str) -> String {
    json.replace('\u{7f}', "\\u007f")
}

/// An error with everything behind it, in one sentence.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors already say what they were caused by.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Colours; `anstream` removes them where nobody would see them.
pub(crate) mod style {
    pub(crate) const ERROR: &str = "\u{1b}[1;31m";
    pub(crate) const GOOD: &str = "\u{1b}[1;32m";
    pub(crate) const FAINT: &str = "\u{1b}[2m";
    pub(crate) const WARNING: &str = "\u{1b}[1;33m";
    pub(crate) const END: &str = "\u{1b}[0m";
}
