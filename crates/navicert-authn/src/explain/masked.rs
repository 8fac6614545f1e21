//! Text with maskable claim values: explanations are often pasted into tickets.

use navicert_cel::Untrusted;

/// Text in which claim values can be masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masked(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Untrusted),
}

impl Masked {
    /// The text with claim values.
    pub fn shown(&self) -> String {
        fn piece(piece: &Piece) -> &str {
            match piece {
                Piece::Text(text) => text,
                Piece::Value(value) => value.expose(),
            }
        }
        self.0.iter().map(piece).collect()
    }

    /// The text with `…` for every claim value.
    pub fn masked(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(value) => value.to_string(),
        };
        self.0.iter().map(piece).collect()
    }

    /// With or without claim values.
    pub fn text(&self, show_values: bool) -> String {
        if show_values { self.shown() } else { self.masked() }
    }

    pub(super) fn text_only(text: impl Into<String>) -> Self {
        Masked(vec![Piece::Text(text.into())])
    }

    pub(super) fn value(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Value(Untrusted::new(text)));
        self
    }

    pub(super) fn then(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Text(text.into()));
        self
    }

    pub(super) fn after(mut self, text: &str) -> Self {
        self.0.insert(0, Piece::Text(text.to_owned()));
        self
    }
}
