//! One entry of `matchImages`, or one key of a keyring, and whether it matches an image.
//!
//! A pattern is a [`Location`] whose host labels may hold globs. `index.rs` looks many of them up at once; this
//! is the matcher it has to agree with, and the one that can say why not.
// I71–I80

use std::fmt;

use crate::location::{Location, LocationError};
use crate::profile::Profile;

/// A pattern, ready to be compared.
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

/// Why a pattern does not match, in the order of the checks.
// I76
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The ports are not the same text.
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
    /// The image's path does not begin with the pattern's.
    // I74
    Path {
        /// The pattern's path.
        pattern: String,
    },
    /// A label does not fit.
    // I75
    Label {
        /// Which one, counted from 1.
        number: usize,
        /// The image's label.
        image: String,
    },
}

/// One label of a pattern's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// No glob in it.
    Exact(Box<[u8]>),
    /// At least one `*`.
    Glob(Glob),
    /// An IPv6 address in brackets without a port, which the kubelet's matcher takes for a character class.
    // I77
    Class(Box<[u8]>),
}

/// A label cut at its stars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Glob {
    /// What stands before the first star.
    pub(crate) prefix: Box<[u8]>,
    /// What stands between stars, in order, empty pieces left out.
    pub(crate) middles: Vec<Box<[u8]>>,
    /// What stands after the last star.
    pub(crate) suffix: Box<[u8]>,
}

impl ImagePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`LocationError`] where the kubelet would refuse the configuration.
    // I46
    pub fn parse(text: &str, profile: Profile) -> Result<Self, LocationError> {
        ImagePattern::parse_bytes(text.as_bytes(), profile)
    }

    /// Reads a pattern that may not be UTF-8: a keyring's key after its escapes were decoded.
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

    /// Whether an image is meant. Ports, label counts, path, labels: the first difference decides.
    pub fn matches(&self, image: &Location<'_>) -> bool {
        self.port[..] == *image.port() && image.path().starts_with(&self.path) && self.matches_host(image)
    }

    /// The same with a reason.
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

    /// Whether host and port are those of an image, whatever the path.
    pub fn matches_registry(&self, image: &Location<'_>) -> bool {
        self.port[..] == *image.port() && self.matches_host(image)
    }

    /// The path every image has to begin with, or nothing.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The digits after the host's colon, or nothing.
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

    /// Whether the pieces between the stars occur in order in what prefix and suffix leave. Taking the first
    /// occurrence of each leaves the most for the next one.
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

/// A label that begins with `[`, as Go's `path.Match` understands it: a class of characters that stands for one of
/// them, followed by literal text and stars. A class without an end matches nothing.
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
    // A class has to go on after each of its characters: at least its end is missing.
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
                write!(f, "the pattern asks for port {pattern}, the image names none")
            }
            Mismatch::Port { pattern, image } if pattern.is_empty() => {
                write!(f, "the image names port {image}, the pattern none")
            }
            Mismatch::Port { pattern, image } => write!(f, "port {pattern} is not port {image}"),
            Mismatch::LabelCount { pattern, image } => {
                write!(f, "the pattern's host has {pattern} labels, the image's {image}")
            }
            Mismatch::Path { pattern } if pattern.contains('*') => {
                write!(f, "the image's path does not begin with `{pattern}` (`*` has no meaning in a path)")
            }
            Mismatch::Path { pattern } => write!(f, "the image's path does not begin with `{pattern}`"),
            Mismatch::Label { number, image } => {
                write!(f, "label {number} of the host, `{image}`, does not fit")
            }
        }
    }
}

#[cfg(test)]
mod tests;
