//! Parses a format string into literal text and clauses.

use super::{Dialect, FormatError};

/// The conversion of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `%s`
    Text,
    /// `%d`
    Decimal,
    /// `%f`
    Fixed,
    /// `%e`
    Scientific,
    /// `%x`
    LowerHex,
    /// `%X`
    UpperHex,
    /// `%o`
    Octal,
    /// `%b`
    Binary,
}

impl Verb {
    /// The types that the clause supports, as worded in the error for a wrong argument.
    #[must_use]
    pub(crate) fn domain(self, dialect: Dialect) -> &'static str {
        let standard = dialect == Dialect::Standard;
        match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal if standard => "decimal clause can only be used on ints, uints, and doubles",
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed if standard => "fixed-point clause can only be used on ints, uints, and doubles",
            Self::Fixed => "fixed-point clause can only be used on doubles",
            Self::Scientific if standard => "scientific clause can only be used on ints, uints, and doubles",
            Self::Scientific => "scientific clause can only be used on doubles",
            Self::LowerHex | Self::UpperHex if standard => {
                "only ints, uints, bytes, and strings can be formatted as hex"
            }
            Self::LowerHex | Self::UpperHex => {
                "only integers, byte buffers, and strings can be formatted as hex"
            }
            Self::Octal if standard => "octal clause can only be used on ints and uints",
            Self::Octal => "octal clause can only be used on integers",
            Self::Binary if standard => "only ints, uints, and bools can be formatted as binary",
            Self::Binary => "only integers and bools can be formatted as binary",
        }
    }
}

/// A verb and the precision before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// The conversion.
    pub verb: Verb,
    /// The precision, `3` in `%.3f`; 6 by default.
    pub precision: u64,
}

/// A part of a format string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Literal text.
    Text(&'t str),
    /// A clause, which formats the next argument.
    Clause(Clause),
}

/// The parts of `template` in order. A clause without an argument is reported before any other error in it.
#[must_use]
pub(crate) fn pieces(template: &str, argument_count: usize, dialect: Dialect) -> Pieces<'_> {
    Pieces { rest: template, used: 0, argument_count, dialect }
}

/// Iterator over the parts of a format string; ends after an error.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'t> {
    rest: &'t str,
    used: usize,
    argument_count: usize,
    dialect: Dialect,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Result<Piece<'t>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let result = self.piece();
        if result.is_err() {
            self.rest = "";
        }
        Some(result)
    }
}

impl<'t> Pieces<'t> {
    fn piece(&mut self) -> Result<Piece<'t>, FormatError> {
        let at = self.rest.find('%').unwrap_or(self.rest.len());
        let (text, tail) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        if !text.is_empty() {
            self.rest = tail;
            return Ok(Piece::Text(text));
        }
        let clause = tail.strip_prefix('%').unwrap_or(tail);
        if clause.is_empty() {
            return Err(FormatError::UnexpectedEnd);
        }
        if let Some(rest) = clause.strip_prefix('%') {
            self.rest = rest;
            return Ok(Piece::Text("%"));
        }
        if self.used >= self.argument_count {
            return Err(FormatError::MissingArgument(self.used));
        }
        self.used += 1;
        let (clause, rest) = parse(clause, self.dialect)?;
        self.rest = rest;
        Ok(Piece::Clause(clause))
    }
}

fn parse(text: &str, dialect: Dialect) -> Result<(Clause, &str), FormatError> {
    let (precision, text) = match text.strip_prefix('.') {
        None => (6, text),
        Some(digits) => {
            let end =
                digits.find(|symbol: char| !symbol.is_ascii_digit()).ok_or(FormatError::PrecisionEnd)?;
            let (digits, rest) = digits.split_at_checked(end).unwrap_or((digits, ""));
            (precision(digits, dialect)?, rest)
        }
    };
    let verb = match text.bytes().next() {
        Some(b's') => Verb::Text,
        Some(b'd') => Verb::Decimal,
        Some(b'f') => Verb::Fixed,
        Some(b'e') => Verb::Scientific,
        Some(b'x') => Verb::LowerHex,
        Some(b'X') => Verb::UpperHex,
        Some(b'o') => Verb::Octal,
        Some(b'b') => Verb::Binary,
        // Only the first byte of a possibly longer character, as in cel-go's message.
        Some(other) => return Err(FormatError::UnknownClause(char::from(other))),
        None => return Err(FormatError::PrecisionEnd),
    };
    Ok((Clause { verb, precision }, text.get(1..).unwrap_or_default()))
}

fn precision(digits: &str, dialect: Dialect) -> Result<u64, FormatError> {
    let value: i64 = digits.parse().map_err(|source: std::num::ParseIntError| {
        let reason = match source.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        FormatError::Precision(digits.to_owned(), reason)
    })?;
    let value = value.unsigned_abs();
    if dialect == Dialect::Standard && value > 100 {
        Err(FormatError::PrecisionLimit(value))
    } else {
        Ok(value)
    }
}
