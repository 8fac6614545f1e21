//! Compile errors: the message, the position and suggestions.

use crate::source::{Source, Span};
use std::fmt;

/// The compilation stage that rejected the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The text is not an expression.
    Parse,
    /// The expression does not type-check.
    Check,
    /// The checked expression cannot be planned, because constant folding fails.
    Program,
}

/// One error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The message, worded as in cel-go where cel-go has one.
    pub message: String,
    /// The text that the error refers to.
    pub span: Span,
    /// Line of the caret, from 1.
    pub line: u32,
    /// Column of the caret in code points, from 1.
    pub column: u32,
    /// The source line.
    pub snippet: String,
    /// A suggestion.
    pub hint: Option<&'static str>,
}

impl Diagnostic {
    pub(crate) fn new(source: &Source, at: u32, span: Span, message: String) -> Self {
        let position = source.position(at);
        let hint = hint_for(&message);
        Diagnostic {
            message,
            span,
            line: position.line,
            column: position.column,
            snippet: source.line(position.line).to_owned(),
            hint,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "ERROR: <input>:{}:{}: {}", self.line, self.column, self.message)?;
        writeln!(out, " | {}", self.snippet.replace('\t', " "))?;
        // cel-go marks a multi-byte character with a wide dot.
        let mut above = self.snippet.chars().map(|symbol| symbol.is_ascii());
        let before = above.by_ref().take(self.column.saturating_sub(1) as usize);
        let dots: String = before.map(|narrow| if narrow { '.' } else { '．' }).collect();
        write!(out, " | {dots}{}", if above.next().unwrap_or(true) { '^' } else { '＾' })?;
        if let Some(hint) = self.hint {
            write!(out, "\n = hint: {hint}")?;
        }
        Ok(())
    }
}

/// Why an expression did not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CompileError {
    /// The stage that failed.
    pub stage: Stage,
    /// At least one error, in source order where possible.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for CompileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            write!(out, "{diagnostic}")?;
        }
        Ok(())
    }
}

/// Sorts errors by source position, as they are displayed.
pub(crate) fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    diagnostics
}

/// Suggestions for common mistakes in rules over claims, found by the error message.
fn hint_for(message: &str) -> Option<&'static str> {
    if message.contains("cannot be range of a comprehension") && message.contains("'any'") {
        return Some("a claim has type any; iterate over `dyn(claims.x)` instead");
    }
    if message.contains("but found 'any'") || message.contains("expected type 'any'") {
        return Some(
            "elements of one literal must share a type; convert with string(…), or wrap each in dyn(…)",
        );
    }
    if message.contains("applied to '(double, int)'") || message.contains("applied to '(int, double)'") {
        return Some("int and double do not mix; write 1.0, or convert with int(…) or double(…)");
    }
    if message.contains("must evaluate to bool") {
        return Some("compare explicitly, as in `claims.email_verified == true`");
    }
    None
}
