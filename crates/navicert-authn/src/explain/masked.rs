//! A text in which the values of claims can be left out: what is said about a token may end up in a ticket.

/// A text in which the values of claims can be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masked(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Words(String),
    Value(String),
}

impl Masked {
    /// With the values of claims.
    pub fn shown(&self) -> String {
        self.0.iter().map(|(Piece::Words(text) | Piece::Value(text))| text.as_str()).collect()
    }

    /// With `…` for every value of a claim.
    pub fn masked(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Words(text) => text.clone(),
            Piece::Value(_) => "…".to_owned(),
        };
        self.0.iter().map(piece).collect()
    }

    /// One or the other.
    pub fn text(&self, show_values: bool) -> String {
        if show_values { self.shown() } else { self.masked() }
    }

    pub(super) fn words(text: impl Into<String>) -> Self {
        Masked(vec![Piece::Words(text.into())])
    }

    pub(super) fn value(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Value(text.into()));
        self
    }

    pub(super) fn then(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Words(text.into()));
        self
    }

    pub(super) fn after(mut self, text: &str) -> Self {
        self.0.insert(0, Piece::Words(text.to_owned()));
        self
    }
}
