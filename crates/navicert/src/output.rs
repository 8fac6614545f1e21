//! Output of the verbs: results on standard output, errors and warnings on standard error. Control characters and
//! bidirectional controls are escaped here, whatever their source; single values that must not break a line are escaped by
//! [`redact::line`] where they are put into a text.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use anstream::AutoStream;
use clap::ValueEnum;
use navicert_client::ConfigErrors;
use navicert_types::redact;
use navicert_types::report::{ErrorClass, ErrorReport};
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;

pub(crate) mod config_report;
pub(crate) mod snippet;

/// Maximum number of errors, and of warnings, printed with their source lines. A file with one systematic mistake has
/// thousands of them.
const MAX_SNIPPETS: usize = 20;
/// Maximum number of messages in the error object.
const MAX_DETAILS: usize = 100;

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable; YAML if the result is a file
    #[default]
    #[value(alias = "yaml")]
    Text,
    /// Machine-readable
    Json,
}

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A message for standard error that names the file, the field and the fix.
    Message { exit: Exit, text: String },
    /// No client can be built.
    Config(Box<ConfigErrors>),
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

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Failure::Config(Box::new(errors))
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
    /// Whether anything was printed on standard output.
    has_result: bool,
    /// Errors printed so far, for the error object of `-o json`.
    errors: Vec<String>,
    snippets: SnippetCount,
}

/// Number of snippets, printed or not.
#[derive(Clone, Copy, Default)]
struct SnippetCount {
    errors: usize,
    warnings: usize,
}

impl Output {
    /// Standard output and error, coloured only on terminals.
    pub(crate) fn new(format: Format) -> Self {
        Output {
            format,
            out: AutoStream::auto(io::stdout()),
            err: AutoStream::auto(io::stderr()),
            has_result: false,
            errors: Vec::new(),
            snippets: SnippetCount::default(),
        }
    }

    /// Whether `-o json` was requested.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints a result as text.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.has_result |= !text.is_empty();
        self.out.write_all(redact::styled(text).as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Prints a result as bytes, without stripping or escaping anything: not for text of a server or a file.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.has_result |= !bytes.is_empty();
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Prints a result in the requested format.
    pub(crate) fn report(&mut self, report: &(impl Serialize + Display)) -> Result<(), Failure> {
        if self.is_json() { self.json(report) } else { self.text(&style::verdicts(&report.to_string())) }
    }

    /// Prints a result as indented JSON.
    pub(crate) fn json(&mut self, report: &impl Serialize) -> Result<(), Failure> {
        let value = sorted(report)?;
        self.text(&redact::json(&format!("{value:#}\n")))
    }

    /// Prints one result line of a `--jsonl` batch.
    pub(crate) fn line(&mut self, report: &impl Serialize) -> Result<(), Failure> {
        let value = sorted(report)?;
        self.text(&redact::json(&format!("{value}\n")))
    }

    /// Prints an error.
    pub(crate) fn error(&mut self, text: &str) {
        self.record_error(text);
        self.note(&format!("{}error:{} {text}", style::ERROR, style::END));
    }

    /// Prints a warning.
    pub(crate) fn warning(&mut self, text: &str) {
        self.note(&format!("{}warning:{} {text}", style::WARNING, style::END));
    }

    /// Prints a problem with its source line, or only counts it once too many have been printed.
    fn snippet(&mut self, is_error: bool, message: impl FnOnce() -> String, render: impl FnOnce() -> String) {
        let count = if is_error { &mut self.snippets.errors } else { &mut self.snippets.warnings };
        *count += 1;
        if *count <= MAX_SNIPPETS {
            self.note(&render());
        }
        if is_error && self.is_json() {
            self.record_error(&message());
        }
    }

    /// Prints one of many errors, or only counts it once too many have been printed.
    pub(crate) fn listed_error(&mut self, text: &str) {
        self.snippet(true, || text.to_owned(), || format!("{}error:{} {text}", style::ERROR, style::END));
    }

    fn record_error(&mut self, text: &str) {
        if self.is_json() && self.errors.len() < MAX_DETAILS {
            self.errors.push(text.to_owned());
        }
    }

    /// Ends the output: says how many problems were left out and, with `-o json`, prints the error object if the verb failed
    /// without a result.
    pub(crate) fn finish(&mut self, exit: Exit) {
        let hidden = |count: usize| count.saturating_sub(MAX_SNIPPETS);
        let SnippetCount { errors, warnings } = self.snippets;
        for (count, what) in [(hidden(errors), "error"), (hidden(warnings), "warning")] {
            let plural = if count == 1 { "" } else { "s" };
            if count > 0 {
                self.note(&format!("and {count} more {what}{plural}"));
            }
        }
        let has_failed = !matches!(exit, Exit::Done | Exit::Child(_));
        if self.is_json() && has_failed && !self.has_result {
            let report = error_report(exit, &self.errors);
            // A closed standard output leaves no reader to tell.
            let _ = self.json(&report);
        }
    }

    /// Shows on a terminal what is being done, in place of the text shown before; an empty text removes it. Never part of
    /// what a pipe or a file receives.
    pub(crate) fn progress(&mut self, text: &str) {
        if io::stderr().is_terminal() && !self.is_json() {
            let _ = write!(io::stderr(), "\r\u{1b}[K{}", redact::line(text));
            let _ = io::stderr().flush();
        }
    }

    /// Prints a formatted block on standard error, such as an annotated snippet.
    pub(crate) fn note(&mut self, text: &str) {
        // A closed standard error leaves no place to report the failure.
        let _ = writeln!(self.err, "{}", redact::styled(text));
    }
}

/// A report as JSON with its fields in alphabetical order.
fn sorted(report: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(report).map_err(|error| Failure::Message {
        exit: Exit::Bug,
        text: format!("failed to serialize the result: {error}"),
    })
}

/// The result of a failed verb with `-o json`.
pub(crate) fn error_report(exit: Exit, messages: &[String]) -> ErrorReport {
    let class = match exit {
        Exit::Done | Exit::No | Exit::Child(_) => ErrorClass::Failure,
        Exit::Usage => ErrorClass::Usage,
        Exit::BadInput => ErrorClass::InvalidInput,
        Exit::Unreachable => ErrorClass::Unreachable,
        Exit::Denied => ErrorClass::Denied,
        Exit::Bug => ErrorClass::Internal,
    };
    let messages = messages.iter().map(|text| anstream::adapter::strip_str(text).to_string());
    ErrorReport::new(class, exit.number(), messages.collect())
}

/// ANSI colours; `anstream` strips them if the stream is not a terminal.
pub(crate) mod style {
    pub(crate) const ERROR: &str = "\u{1b}[1;31m";
    pub(crate) const GOOD: &str = "\u{1b}[1;32m";
    pub(crate) const FAINT: &str = "\u{1b}[2m";
    pub(crate) const WARNING: &str = "\u{1b}[1;33m";
    pub(crate) const END: &str = "\u{1b}[0m";

    /// A verdict (`PASS`, `WARN`, `FAIL`, `SKIP`) in its colour: one palette for every verb that prints steps.
    pub(crate) fn verdict(verdict: impl std::fmt::Display) -> String {
        let word = verdict.to_string();
        let colour = match word.as_str() {
            "PASS" => GOOD,
            "WARN" => WARNING,
            "FAIL" => ERROR,
            _ => FAINT,
        };
        format!("{colour}{word}{END}")
    }

    /// A text in which every verdict that begins a line has its colour.
    pub(crate) fn verdicts(text: &str) -> String {
        let coloured = |line: &str| {
            let (blank, rest) = line.split_at(line.len() - line.trim_start_matches(' ').len());
            match rest.split_once("  ") {
                Some((word @ ("PASS" | "WARN" | "FAIL" | "SKIP"), behind)) => {
                    format!("{blank}{}  {behind}", verdict(word))
                }
                _ => line.to_owned(),
            }
        };
        text.split_inclusive('\n').map(coloured).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::style;

    #[test]
    fn only_verdicts_that_begin_a_line_are_coloured() {
        let coloured = style::verdicts("PASS  a FAIL  b\n  SKIP  c\nFAILED  d\nPASS e\n");
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        assert_eq!(plain, "PASS  a FAIL  b\n  SKIP  c\nFAILED  d\nPASS e\n");
        assert_eq!(coloured.matches(style::END).count(), 2, "{coloured:?}");
        assert!(coloured.contains(&format!("  {}SKIP{}  c", style::FAINT, style::END)), "{coloured:?}");
    }
}
