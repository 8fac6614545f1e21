//! Prints problems of kubeconfig files: each once, with file, location and fix.

use navicert_client::kubeconfig::{KubeconfigFileError, KubeconfigFileErrorReason, SourceLocation};
use navicert_types::tree;
use serde_json::{Value, json};

use crate::output::Output;
use crate::output::snippet::{self, SnippetProblem as Drawn};

/// One finding, printed as text or JSON.
pub(super) struct Finding<'a> {
    pub(super) fatal: bool,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) location: Option<SourceLocation<'a>>,
}

impl Finding<'_> {
    /// Prints the finding on standard error.
    pub(super) fn print(&self, output: &mut Output) {
        let Some(location) = &self.location else {
            let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let text = format!("{}{hint}", self.message);
            return if self.fatal { output.error(&text) } else { output.warning(&text) };
        };
        output.note(&snippet::render(&Drawn {
            file: &location.origin.path.display().to_string(),
            text: &tree::source_text(location.origin.text.expose()),
            hidden: false,
            span: location.span,
            message: self.message.clone(),
            hint: self.hint.clone(),
            fatal: self.fatal,
        }));
    }

    /// The finding as JSON.
    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "severity": if self.fatal { "error" } else { "warning" },
            "message": self.message,
        });
        if let Some(object) = value.as_object_mut() {
            if let Some(hint) = &self.hint {
                object.insert("hint".to_owned(), json!(hint));
            }
            if let Some(location) = &self.location {
                object.insert("file".to_owned(), json!(location.origin.path.display().to_string()));
                object.insert("line".to_owned(), json!(location.span.line));
                object.insert("column".to_owned(), json!(location.span.column));
            }
        }
        value
    }
}

/// Prints every error of the files that failed to load.
pub(super) fn file_errors(errors: &[KubeconfigFileError], output: &mut Output) {
    for error in errors {
        let file = error.path.display().to_string();
        let (diagnostics, text) = match &error.reason {
            KubeconfigFileErrorReason::Undecodable { diagnostics, text } => (diagnostics, text),
            KubeconfigFileErrorReason::Unreadable(cause) => {
                output.error(&format!("failed to read kubeconfig `{file}`: {cause}; use a readable file"));
                continue;
            }
        };
        let text = tree::source_text(text.expose());
        for diagnostic in diagnostics {
            let field =
                if diagnostic.path.is_root() { String::new() } else { format!("{}: ", diagnostic.path) };
            output.note(&snippet::render(&Drawn {
                file: &file,
                text: &text,
                hidden: diagnostic.is_secret,
                span: diagnostic.span,
                message: format!("{field}{}", diagnostic.message),
                hint: diagnostic.hint.clone(),
                fatal: true,
            }));
        }
    }
}
