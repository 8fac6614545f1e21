//! Words to values, by pflag's rules: `--x v`, `--x=v`, `-xv`, `-x v`; booleans never take the next word.

use crate::args::flags::{self, Flag, FlagKind, Origin};
use crate::args::verb_flags::SETUP_FLAGS;
use crate::error::LoginError;

/// The values of the flags that were given.
#[derive(Clone, Default)]
pub struct ParsedFlags {
    values: Vec<(&'static Flag, String)>,
}

/// Parses the words after `login`.
///
/// # Errors
/// An unknown flag, a missing or invalid value, or a word that is not a flag.
pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<ParsedFlags, LoginError> {
    parse_with(words, &[])
}

/// Parses the words after a verb that has further flags.
///
/// # Errors
/// As [`parse`].
pub fn parse_with<S: AsRef<str>>(words: &[S], further: &'static [Flag]) -> Result<ParsedFlags, LoginError> {
    let mut parsed = ParsedFlags::default();
    let mut words = words.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        let (flag, attached) = if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let flag = flags::find(name, further).ok_or_else(|| unknown(name))?;
            (flag, value)
        } else if let Some(rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let letter = rest.chars().next().unwrap_or_default();
            let flag = flags::find_short(letter)
                .ok_or_else(|| usage(format!("unknown shorthand flag: -{letter}")))?;
            let value = rest.get(letter.len_utf8()..).unwrap_or_default();
            (flag, (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value)))
        } else {
            return Err(usage(format!("unexpected argument `{word}`; see navicert login --help")));
        };
        let value = match (flag.kind, attached) {
            (FlagKind::Bool, None) => "true".to_owned(),
            (FlagKind::OptionalText, None) => String::new(),
            (_, Some(value)) => value.to_owned(),
            (_, None) => {
                let missing = || usage(format!("missing value of --{}", flag.name));
                words.next().ok_or_else(missing)?.to_owned()
            }
        };
        check(flag, &value)?;
        parsed.values.push((flag, value));
    }
    parsed.reject_after_terminator(words)
}

/// Checks a value where its type allows only some texts. Errors name the flag and not the value, which may be a secret.
fn check(flag: &Flag, value: &str) -> Result<(), LoginError> {
    let is_valid = match flag.kind {
        FlagKind::Bool => bool_value(value).is_some(),
        FlagKind::Integer => value.parse::<i64>().is_ok(),
        FlagKind::Map => {
            csv_fields(value).is_some_and(|fields| fields.iter().all(|field| field.contains('=')))
        }
        FlagKind::List => csv_fields(value).is_some(),
        FlagKind::Text | FlagKind::OptionalText | FlagKind::Array => true,
    };
    let wanted = match flag.kind {
        FlagKind::Bool => "true or false",
        FlagKind::Integer => "a number",
        FlagKind::Map => "NAME=VALUE",
        _ => "a comma-separated list",
    };
    if is_valid { Ok(()) } else { Err(usage(format!("invalid value of --{}: expected {wanted}", flag.name))) }
}

impl ParsedFlags {
    fn reject_after_terminator<'w>(
        self,
        mut rest: impl Iterator<Item = &'w str>,
    ) -> Result<Self, LoginError> {
        match rest.next() {
            Some(word) => Err(usage(format!("unexpected argument `{word}`; see navicert login --help"))),
            None => Ok(self),
        }
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(flag, _)| flag.name == name).map(|(_, value)| value.as_str())
    }

    /// The first flag that is not one of these, for verbs that know only a few.
    pub fn other_than(&self, names: &[&str]) -> Option<&'static str> {
        self.values.iter().map(|(flag, _)| flag.name).find(|name| !names.contains(name))
    }

    /// The flags that were given and have no effect.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        self.values.iter().filter(|(flag, _)| flag.origin == Origin::Ignored).map(|(flag, _)| flag.name)
    }

    /// The flags as words again, without these and without those that have no effect.
    pub(crate) fn words_except(&self, names: &[&str]) -> Vec<String> {
        let is_kept = |flag: &Flag| flag.origin != Origin::Ignored && !names.contains(&flag.name);
        let kept = self.values.iter().filter(|(flag, _)| is_kept(flag));
        kept.map(|(flag, value)| format!("--{}={value}", flag.name)).collect()
    }

    /// The last value of a flag.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// The last value of a flag, if it is not empty.
    pub fn filled(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty()).map(ToOwned::to_owned)
    }

    /// Whether a boolean flag is set.
    pub fn is_set(&self, name: &str) -> bool {
        self.text(name).and_then(bool_value).unwrap_or(false)
    }

    /// The value of a number.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    /// The values of a flag that can be repeated.
    pub fn array(&self, name: &str) -> Vec<String> {
        self.all(name).map(ToOwned::to_owned).collect()
    }

    /// The values of a list, in order.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.all(name).filter_map(csv_fields).flatten().filter(|field| !field.is_empty()).collect()
    }

    /// The pairs of a map, in order; of two values for one key, the last.
    pub fn map(&self, name: &str) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for field in self.list(name) {
            let Some((key, value)) = field.split_once('=') else { continue };
            pairs.retain(|(known, _)| known != key);
            pairs.push((key.to_owned(), value.to_owned()));
        }
        pairs
    }
}

fn unknown(name: &str) -> LoginError {
    match flags::instead_of(name) {
        Some(instead) => usage(format!("--{name} is not supported in this version: {instead}")),
        None if SETUP_FLAGS.iter().any(|flag| flag.name == name) => {
            usage(format!("--{name} is a flag of `navicert login setup`"))
        }
        None => usage(format!("unknown flag: --{name}; see navicert login --help")),
    }
}

fn usage(text: String) -> LoginError {
    LoginError::Usage(text)
}

/// The texts that Go's `strconv.ParseBool` accepts.
fn bool_value(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Splits one line of CSV: `a,"b,c"` is `a` and `b,c`. `None` for a quote in the wrong place.
fn csv_fields(text: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (field, after) = quoted_field(quoted)?;
            fields.push(field);
            match after.strip_prefix(',') {
                Some(next) => rest = next,
                None if after.is_empty() => return Some(fields),
                None => return None,
            }
        } else {
            let (field, after) =
                rest.split_once(',').map_or((rest, None), |(field, after)| (field, Some(after)));
            if field.contains('"') {
                return None;
            }
            fields.push(field.to_owned());
            match after {
                Some(after) => rest = after,
                None => return Some(fields),
            }
        }
    }
}

/// A quoted field after its opening quote, and the text after its closing quote.
fn quoted_field(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None => return Some((field, after)),
        }
    }
}
