//! `kubernetes.Semver`: versions as defined by semver.org, compared by precedence. Build metadata is kept but not
//! compared.

use std::cmp::Ordering;
use std::fmt;

/// A version.
#[derive(Clone, Debug)]
pub struct Version {
    numbers: [u64; 3],
    prerelease: Box<str>,
    build: Box<str>,
}

/// An invalid version, worded as by the library that Kubernetes uses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VersionError {
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// Fewer than three numbers.
    #[error("No Major.Minor.Patch elements found")]
    Short,
    /// Fewer than three numbers, followed by a prerelease or build.
    #[error("short version cannot contain PreRelease/Build meta data")]
    ShortWithExtras,
    /// A number contains other characters than digits.
    #[error("Invalid character(s) found in {0} number {1:?}")]
    NumberCharacters(&'static str, String),
    /// `01`
    #[error("{0} number must not contain leading zeroes {1:?}")]
    LeadingZero(&'static str, String),
    /// A number is empty or overflows 64 bits.
    #[error("strconv.ParseUint: parsing {0:?}: {1}")]
    Number(String, &'static str),
    /// `1.2.3-`, `1.2.3-a..b`
    #[error("Prerelease is empty")]
    EmptyPrerelease,
    /// `1.2.3-a_b`
    #[error("Invalid character(s) found in prerelease {0:?}")]
    PrereleaseCharacters(String),
    /// `1.2.3-01`
    #[error("Numeric PreRelease version must not contain leading zeroes {0:?}")]
    PrereleaseLeadingZero(String),
    /// `1.2.3+`
    #[error("Build meta data is empty")]
    EmptyBuild,
    /// `1.2.3+a_b`
    #[error("Invalid character(s) found in build meta data {0:?}")]
    BuildCharacters(String),
}

impl Version {
    /// `semver(text)` or `semver(text, normalize)`; `isSemver` is whether this succeeds.
    ///
    /// Normalization accepts a leading `v`, leading zeros, and one or two numbers instead of three.
    pub(crate) fn parse(text: &str, normalize: bool) -> Result<Self, VersionError> {
        if normalize {
            Self::parse_tolerant(text.strip_prefix('v').unwrap_or(text))
        } else {
            Self::parse_strict(text)
        }
    }

    fn parse_strict(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Err(VersionError::Empty);
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(VersionError::Short);
        };
        let (patch, extras) = split_extras(rest);
        Self::assemble(
            [
                number("major", "Major", major)?,
                number("minor", "Minor", minor)?,
                number("patch", "Patch", patch)?,
            ],
            extras,
        )
    }

    fn parse_tolerant(text: &str) -> Result<Self, VersionError> {
        let mut parts: Vec<String> = text.splitn(3, '.').map(with_plain_number).collect();
        if parts.len() < 3 {
            if text.contains(['+', '-']) {
                return Err(VersionError::ShortWithExtras);
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse_strict(&parts.join("."))
    }

    fn assemble(numbers: [u64; 3], extras: &str) -> Result<Self, VersionError> {
        let (prerelease, build) = match extras.split_once('+') {
            Some((prerelease, build)) => (prerelease, Some(build)),
            None => (extras, None),
        };
        let prerelease = prerelease.strip_prefix('-');
        for part in prerelease.iter().flat_map(|part| part.split('.')) {
            check_prerelease(part)?;
        }
        for part in build.iter().flat_map(|part| part.split('.')) {
            if part.is_empty() {
                return Err(VersionError::EmptyBuild);
            }
            if !part.bytes().all(in_identifier) {
                return Err(VersionError::BuildCharacters(part.to_owned()));
            }
        }
        Ok(Self {
            numbers,
            prerelease: prerelease.unwrap_or_default().into(),
            build: build.unwrap_or_default().into(),
        })
    }

    /// `major()`. Wraps if it overflows `int`, as upstream.
    #[must_use]
    pub(crate) fn major(&self) -> i64 {
        self.numbers[0].cast_signed()
    }

    /// `minor()`
    #[must_use]
    pub(crate) fn minor(&self) -> i64 {
        self.numbers[1].cast_signed()
    }

    /// `patch()`
    #[must_use]
    pub(crate) fn patch(&self) -> i64 {
        self.numbers[2].cast_signed()
    }
}

/// Splits the patch number from the prerelease and build, which keep their separators.
fn split_extras(text: &str) -> (&str, &str) {
    let at = text.find(['-', '+']).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// Removes leading zeros from a number; a part without digits, such as `-alpha` in `1.2.-alpha`, gets a zero.
fn with_plain_number(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    let zero = if rest.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "0" };
    format!("{zero}{rest}")
}

fn number(kind: &'static str, title: &'static str, text: &str) -> Result<u64, VersionError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(VersionError::NumberCharacters(kind, text.to_owned()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(VersionError::LeadingZero(title, text.to_owned()));
    }
    let reason = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| VersionError::Number(text.to_owned(), reason))
}

fn check_prerelease(part: &str) -> Result<(), VersionError> {
    if part.is_empty() {
        return Err(VersionError::EmptyPrerelease);
    }
    if part.bytes().all(|byte| byte.is_ascii_digit()) {
        if part.len() > 1 && part.starts_with('0') {
            return Err(VersionError::PrereleaseLeadingZero(part.to_owned()));
        }
        return match part.parse::<u64>() {
            Ok(_) => Ok(()),
            Err(_) => Err(VersionError::Number(part.to_owned(), "value out of range")),
        };
    }
    if part.bytes().all(in_identifier) {
        Ok(())
    } else {
        Err(VersionError::PrereleaseCharacters(part.to_owned()))
    }
}

fn in_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Precedence: a prerelease is lower than its release, numbers are lower than words, fewer parts are lower than
/// more. `compareTo`, `isLessThan`, `isGreaterThan` and `==` use this order.
impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_numbers = self.numbers.cmp(&other.numbers);
        by_numbers.then_with(|| match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self
                .prerelease
                .split('.')
                .map(Identifier::parse)
                .cmp(other.prerelease.split('.').map(Identifier::parse)),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

/// An identifier of a prerelease; the variants are in order of precedence.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'v> {
    Number(u64),
    Word(&'v str),
}

impl<'v> Identifier<'v> {
    fn parse(part: &'v str) -> Self {
        part.parse().map_or(Self::Word(part), Self::Number)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;
    use std::cmp::Ordering;

    fn version(text: &str) -> Version {
        Version::parse(text, false).unwrap()
    }

    #[test]
    fn strict_versions_round_trip() {
        // cel.jsonl "semver"
        for text in [
            "1.2.3",
            "1.2.3-alpha.1+build.5",
            "1.2.3-0",
            "1.2.3+01",
            "1.2.3--",
            "1.2.3-0a",
            "1.2.3-a+b-c",
            "1.2.18446744073709551615",
            "1.2.3-18446744073709551615",
            "1.2.3-x.7.z.92",
        ] {
            assert_eq!(version(text).to_string(), text);
        }
        for (text, message) in [
            ("v1.2.3", "Invalid character(s) found in major number \"v1\""),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("", "Version string empty"),
            ("01.2.3", "Major number must not contain leading zeroes \"01\""),
            ("1.02.3", "Minor number must not contain leading zeroes \"02\""),
            ("1.2.3.4", "Invalid character(s) found in patch number \"3.4\""),
            ("1.2.3 ", "Invalid character(s) found in patch number \"3 \""),
            ("+1.2.3", "Invalid character(s) found in major number \"+1\""),
            (
                "1.2.18446744073709551616",
                "strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
            ),
            ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-a..b", "Prerelease is empty"),
            ("1.2.3-é", "Invalid character(s) found in prerelease \"é\""),
            (
                "1.2.3-18446744073709551616",
                "strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
            ),
            ("1.2.3+", "Build meta data is empty"),
            ("1.2.3+x+y", "Invalid character(s) found in build meta data \"x+y\""),
        ] {
            assert_eq!(Version::parse(text, false).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn normalization_adds_missing_numbers() {
        for (text, normalized) in [
            ("v1.2.3", Some("1.2.3")),
            ("v1", Some("1.0.0")),
            ("1", Some("1.0.0")),
            ("01.2", Some("1.2.0")),
            ("v01.02.03", Some("1.2.3")),
            ("00.00.00", Some("0.0.0")),
            ("1.2.3-a+b", Some("1.2.3-a+b")),
            ("10.011.--", Some("10.11.0--")),
            ("1.2.-a", Some("1.2.0-a")),
            ("1.2.-", None),
            ("1.2-alpha", None),
            ("1+2-3", None),
            ("v1.2.3-alpha.01", None),
            (" 1.2.3 ", None),
            ("vv1.2.3", None),
            ("V1.2.3", None),
            ("", None),
            ("v", None),
            ("1..2", None),
            ("1.2.", None),
            (".1.2", None),
            ("1.2.3.4", None),
        ] {
            let read = Version::parse(text, true).ok().map(|version| version.to_string());
            assert_eq!(read.as_deref(), normalized, "{text}");
        }
    }

    #[test]
    fn precedence_ignores_build_metadata() {
        let rising = [
            "1.2.3-1",
            "1.2.3-2",
            "1.2.3-11",
            "1.2.3-B",
            "1.2.3-a",
            "1.2.3-alpha",
            "1.2.3-alpha.1",
            "1.2.3-alpha.beta",
            "1.2.3",
            "1.2.4",
            "1.10.0",
            "2.0.0",
        ];
        for pair in rising.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("1.2.3+a").cmp(&version("1.2.3+b")), Ordering::Equal);
        assert_eq!([version("1.2.3").major(), version("1.2.3").minor(), version("1.2.3").patch()], [1, 2, 3]);
        assert_eq!(version("18446744073709551615.0.0").major(), -1);
    }
}
