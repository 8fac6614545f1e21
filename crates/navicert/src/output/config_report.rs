//! Prints the problems of a configuration: each once, with file, location and fix. Every verb prints them here.

use navicert_client::config::{ConfigError, ConfigErrorClass, ConfigErrors, ConfigLocation, ConfigWarning};
use navicert_client::report::{ConfigFinding, FindingSeverity};
use navicert_types::tree::{self, Span};
use navicert_types::{error_chain, redact};

use super::Output;
use super::snippet::{self, SnippetProblem};
use crate::exit::Exit;

/// Prints every problem. The exit code is that of the first.
pub(crate) fn print_errors(errors: &ConfigErrors, output: &mut Output) -> Exit {
    for error in errors {
        Finding::from(error).print(output);
    }
    Exit::from(errors.class())
}

/// One problem or warning, printed as text or JSON.
pub(crate) struct Finding<'a> {
    pub(crate) fatal: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) location: Option<Place<'a>>,
}

/// A position in a file.
pub(crate) struct Place<'a> {
    pub(crate) file: String,
    pub(crate) text: &'a [u8],
    pub(crate) span: Span,
    /// Whether the text may be a secret.
    pub(crate) hidden: bool,
}

impl<'a> Place<'a> {
    fn new(location: &'a ConfigLocation, hidden: bool) -> Self {
        let (file, text) = (location.path().display().to_string(), location.text().expose());
        Place { file, text, span: location.span(), hidden }
    }
}

impl<'a> From<&'a ConfigError> for Finding<'a> {
    fn from(error: &'a ConfigError) -> Self {
        let hint = match error.class() {
            ConfigErrorClass::NoConfiguration if error.file().is_none() => {
                error.help().map(|help| format!("{help}; or name a file with --kubeconfig"))
            }
            _ => error.help().map(ToOwned::to_owned),
        };
        Finding {
            fatal: true,
            message: redact::terminal(&error_chain(error)).into_owned(),
            hint,
            location: error.location().map(|location| Place::new(location, error.is_secret())),
        }
    }
}

impl<'a> From<&'a ConfigWarning> for Finding<'a> {
    fn from(warning: &'a ConfigWarning) -> Self {
        Finding {
            fatal: false,
            message: redact::terminal(&warning.to_string()).into_owned(),
            hint: warning.help().map(ToOwned::to_owned),
            location: warning.location().map(|location| Place::new(location, false)),
        }
    }
}

impl Finding<'_> {
    /// Prints the finding on standard error.
    pub(crate) fn print(&self, output: &mut Output) {
        let Some(place) = &self.location else {
            let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let text = format!("{}{hint}", self.message);
            return if self.fatal { output.error(&text) } else { output.warning(&text) };
        };
        let problem = SnippetProblem {
            file: &place.file,
            text: &tree::source_text(place.text),
            hidden: place.hidden,
            span: place.span,
            message: self.message.clone(),
            hint: self.hint.clone(),
            fatal: self.fatal,
        };
        snippet::print(&problem, output);
    }

    /// The finding for a report.
    pub(crate) fn report(&self) -> ConfigFinding {
        let severity = if self.fatal { FindingSeverity::Error } else { FindingSeverity::Warning };
        let finding = ConfigFinding::new(severity, self.message.clone(), self.hint.clone());
        match &self.location {
            Some(place) => finding.at(&place.file, place.span),
            None => finding,
        }
    }
}
