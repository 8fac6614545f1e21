//! Matches one entry of `matchImages`, or one key of a keyring, against an image.
//!
//! A pattern is a [`Location`] whose host labels may contain globs. `index.rs` matches many patterns at once and must agree
//! with this matcher, which also explains mismatches.
// I71–I80

use std::fmt;

use crate::location::{Location, LocationError};
use crate::profile::Profile;

/// A parsed pattern.
///
/// ```
/// use navicert_image::{ImagePattern, Location, Profile};
///
/// let pattern = ImagePattern::parse("*.dkr.ecr.*.amazonaws.com", Profile::Kube).unwrap();
/// let image = Location::parse(b"123456789012.dkr.ecr.eu-west-1.amazonaws.com/app").unwrap();
/// assert!(pattern.matches(&image));
/// ```
#[derive(Clone, Debug)]
pub struct ImagePattern {
    labels: Vec<Label>,
    port: Box<[u8]>,
    path: Box<[u8]>,
}

/// Why a pattern does not match; variants in the order of the checks.
// I76
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The ports differ as text.
    // I72
    Port {
        /// The pattern's, empty for none.
        pattern: String,
        /// The image's, empty for none.
        image: String,
    },
    /// The hosts have different numbers of labels.
    // I73
    LabelCount {
        /// The pattern's.
        pattern: usize,
        /// The image's.
        image: usize,
    },
    /// The image's path does not start with the pattern's.
    // I74
    Path {
        /// The pattern's path.
        pattern: String,
    },
    /// A label does not match.
    // I75
    Label {
        /// The number of the label, starting at 1.
        number: usize,
        /// The image's label.
        image: String,
    },
}

/// One label of a pattern's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// Without a glob.
    Exact(Box<[u8]>),
    /// With at least one `*`.
    Glob(Glob),
    /// An IPv6 address in brackets without a port, which the kubelet's matcher parses as a character class.
    // I77
    Class(Box<[u8]>),
}

/// A label split at its `*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Glob {
    /// The text before the first `*`.
    pub(crate) prefix: Box<[u8]>,
    /// The non-empty pieces between `*`, in order.
    pub(crate) middles: Vec<Box<[u8]>>,
    /// The text after the last `*`.
    pub(crate) suffix: Box<[u8]>,
}

impl ImagePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`LocationError`] if the kubelet would reject the configuration.
    // I46
    pub fn parse(text: &str, profile: Profile) -> Result<Self, LocationError> {
        ImagePattern::parse_bytes(text.as_bytes(), profile)
    }

    /// Parses a pattern that may be invalid UTF-8: a keyring key with decoded escapes.
    pub(crate) fn parse_bytes(text: &[u8], profile: Profile) -> Result<Self, LocationError> {
        let location = Location::parse(text)?;
        let bracketed = location.host().starts_with(b"[");
        let labels = if bracketed && profile == Profile::Hardened {
            location.labels().map(|label| Label::Exact(label.into())).collect()
        } else {
            location.labels().map(Label::new).collect()
        };
        Ok(ImagePattern { labels, port: location.port().into(), path: location.path().into() })
    }

    /// Whether the pattern matches an image: equal port, equal number of labels, path prefix, matching labels.
    pub fn matches(&self, image: &Location<'_>) -> bool {
        self.port[..] == *image.port() && image.path().starts_with(&self.path) && self.matches_host(image)
    }

    /// Like [`matches`](Self::matches), with the reason for a mismatch.
    ///
    /// # Errors
    /// The first [`Mismatch`] in the kubelet's order of checks.
    // I76
    pub fn compare(&self, image: &Location<'_>) -> Result<(), Mismatch> {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.port[..] != *image.port() {
            return Err(Mismatch::Port { pattern: shown(&self.port), image: shown(image.port()) });
        }
        let count = image.labels().count();
        if self.labels.len() != count {
            return Err(Mismatch::LabelCount { pattern: self.labels.len(), image: count });
        }
        if !image.path().starts_with(&self.path) {
            return Err(Mismatch::Path { pattern: shown(&self.path) });
        }
        match self.labels.iter().zip(image.labels()).position(|(label, text)| !label.matches(text)) {
            Some(at) => Err(Mismatch::Label {
                number: at + 1,
                image: shown(image.labels().nth(at).unwrap_or_default()),
            }),
            None => Ok(()),
        }
    }

    /// Whether host and port match an image, ignoring the path.
    pub fn matches_registry(&self, image: &Location<'_>) -> bool {
        self.port[..] == *image.port() && self.matches_host(image)
    }

    /// The required path prefix, or empty.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The port's digits, or empty.
    pub fn port(&self) -> &[u8] {
        &self.port
    }

    pub(crate) fn labels(&self) -> &[Label] {
        &self.labels
    }

    fn matches_host(&self, image: &Location<'_>) -> bool {
        let mut labels = self.labels.iter();
        image.labels().all(|text| labels.next().is_some_and(|label| label.matches(text)))
            && labels.next().is_none()
    }
}

impl Label {
    fn new(text: &[u8]) -> Self {
        if text.contains(&b'[') {
            return Label::Class(text.into());
        }
        let mut pieces = text.split(|&byte| byte == b'*');
        let prefix = pieces.next().unwrap_or_default().into();
        match pieces.next_back() {
            None => Label::Exact(text.into()),
            Some(suffix) => {
                let middles = pieces.filter(|piece| !piece.is_empty()).map(Into::into).collect();
                Label::Glob(Glob { prefix, middles, suffix: suffix.into() })
            }
        }
    }

    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        match self {
            Label::Exact(exact) => **exact == *text,
            Label::Glob(glob) => glob.matches(text),
            Label::Class(class) => class_matches(class, text),
        }
    }
}

impl Glob {
    fn matches(&self, text: &[u8]) -> bool {
        let between = text.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_suffix(&*self.suffix));
        between.is_some_and(|between| self.middles_match(between))
    }

    /// Whether the pieces between the `*` occur in order in the text without prefix and suffix. Matching the first
    /// occurrence of each piece is sufficient.
    pub(crate) fn middles_match(&self, mut between: &[u8]) -> bool {
        self.middles.iter().all(|piece| {
            let found = between.windows(piece.len()).position(|window| *window == **piece);
            found.is_some_and(|at| {
                between = between.get(at + piece.len()..).unwrap_or_default();
                true
            })
        })
    }
}

/// Matches a label that starts with `[` like Go's `path.Match`: a character class, then literal text and `*`. An
/// unterminated class matches nothing.
fn class_matches(pattern: &[u8], text: &[u8]) -> bool {
    let Some(inside) = pattern.strip_prefix(b"[") else { return false };
    let Some((ranges, rest)) = class_ranges(inside) else { return false };
    let Some((found, tail)) = first_character(text) else { return false };
    ranges.iter().any(|&(low, high)| low <= found && found <= high) && Label::new(rest).matches(tail)
}

/// First and last characters.
type Ranges = Vec<(char, char)>;

/// The ranges of a class, and what follows its closing bracket.
fn class_ranges(mut text: &[u8]) -> Option<(Ranges, &[u8])> {
    let mut ranges = Vec::new();
    loop {
        if let (Some(rest), false) = (text.strip_prefix(b"]"), ranges.is_empty()) {
            return Some((ranges, rest));
        }
        let (low, rest) = class_character(text)?;
        text = rest;
        let mut high = low;
        if let Some(rest) = text.strip_prefix(b"-") {
            (high, text) = class_character(rest)?;
        }
        ranges.push((low, high));
    }
}

fn class_character(text: &[u8]) -> Option<(char, &[u8])> {
    let (character, rest) = first_character(text)?;
    let legal = !matches!(character, '-' | ']') && character != char::REPLACEMENT_CHARACTER;
    // The closing bracket must follow, so the rest must not be empty.
    (legal && !rest.is_empty()).then_some((character, rest))
}

fn first_character(text: &[u8]) -> Option<(char, &[u8])> {
    let head = text.get(..text.len().min(4)).unwrap_or_default();
    let chunk = head.utf8_chunks().next()?;
    match chunk.valid().chars().next() {
        Some(character) => Some((character, text.get(character.len_utf8()..).unwrap_or_default())),
        None => Some((char::REPLACEMENT_CHARACTER, text.get(1..).unwrap_or_default())),
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Port { pattern, image } if image.is_empty() => {
                write!(f, "the pattern has port {pattern}, the image has none")
            }
            Mismatch::Port { pattern, image } if pattern.is_empty() => {
                write!(f, "the image has port {image}, the pattern has none")
            }
            Mismatch::Port { pattern, image } => {
                write!(f, "port {pattern} of the pattern differs from port {image} of the image")
            }
            Mismatch::LabelCount { pattern, image } => {
                write!(f, "the pattern's host has {pattern} labels, the image's host has {image}")
            }
            Mismatch::Path { pattern } if pattern.contains('*') => {
                write!(
                    f,
                    "the image's path does not start with `{pattern}` (`*` is not a wildcard in a path)"
                )
            }
            Mismatch::Path { pattern } => write!(f, "the image's path does not start with `{pattern}`"),
            Mismatch::Label { number, image } => {
                write!(f, "host label {number} (`{image}`) does not match")
            }
        }
    }
}

#[cfg(test)]
mod tests;
