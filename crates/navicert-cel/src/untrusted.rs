//! Text that comes from the evaluated data: shown only where the caller asks for it.

use std::fmt;

/// Text from the evaluated data, such as the value of a claim. `Display` and `Debug` print `…` instead of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Untrusted(pub(crate) String);

impl Untrusted {
    /// Marks text as untrusted.
    pub fn new(text: impl Into<String>) -> Self {
        Untrusted(text.into())
    }

    /// The text. Logs, metrics and responses to clients must not contain it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// What is printed in place of untrusted text.
const REDACTED: &str = "…";

impl fmt::Display for Untrusted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(REDACTED)
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Untrusted({REDACTED})")
    }
}

/// A key or an index: written in the expression, or computed from the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Written in the expression.
    Literal(String),
    /// Computed during the evaluation.
    Computed(Untrusted),
}

impl Operand {
    /// The text, even if it is untrusted.
    pub fn expose(&self) -> &str {
        match self {
            Operand::Literal(text) => text,
            Operand::Computed(text) => text.expose(),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Literal(text) => out.write_str(text),
            Operand::Computed(text) => text.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_printed_only_when_exposed() {
        let computed = Operand::Computed(Untrusted::new("canary"));
        for printed in
            [computed.to_string(), format!("{computed:?}"), format!("{computed:#?}"), format!("{computed:#}")]
        {
            assert!(!printed.contains("canary"), "{printed}");
        }
        assert_eq!(computed.expose(), "canary");
        assert_eq!(Operand::Literal("hd".to_owned()).to_string(), "hd");
    }
}
