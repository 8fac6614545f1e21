//! The parameters of a list that change how a request is interpreted: whether it is a watch, and whether its field
//! selector requires one name.

use std::borrow::Cow;

use navicert_go::percent::{Plus, decode};

use super::label_selector;

/// Go's limit on the number of parameters; a query with more has none.
const MAX_PARAMETERS: usize = 10_000;

/// A decoded name and value.
type Parameter<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The parameters of a query, as Go's `net/url` reads them: a pair with an invalid escape sequence or a `;` is skipped.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a>(Vec<Parameter<'a>>);

impl<'a> Parameters<'a> {
    pub(super) fn read(query: &'a str) -> Self {
        if query.split('&').count() > MAX_PARAMETERS {
            return Parameters::default();
        }
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name, Plus::Space)?, decode(value, Plus::Space)?))
        });
        Parameters(decoded.collect())
    }

    /// The first value of a parameter.
    pub(super) fn first(&self, name: &str) -> Option<&Cow<'a, [u8]>> {
        self.0.iter().find(|(found, _)| **found == *name.as_bytes()).map(|(_, value)| value)
    }
}

/// What the parameters of a list say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListOptions {
    pub(super) watch: bool,
    /// The name that the field selector requires.
    pub(super) name: Option<String>,
}

impl ListOptions {
    /// Reads the options. One invalid option makes kube-apiserver ignore all of them except `watch`.
    pub(super) fn read(parameters: &Parameters<'_>, field_selector: Option<&str>) -> Self {
        let watch = parameters.first("watch").map(|value| &**value);
        let is_integer = |name: &str| {
            let value = parameters.first(name).map(|value| std::str::from_utf8(value));
            value.is_none_or(|value| value.is_ok_and(|text| text.parse::<i64>().is_ok()))
        };
        let label_selector = parameters.first("labelSelector");
        let is_valid = is_integer("limit")
            && is_integer("timeoutSeconds")
            && label_selector.is_none_or(|selector| label_selector::is_valid(selector));
        match exact_name(field_selector.unwrap_or_default()) {
            Ok(name) if is_valid => ListOptions { watch: watch.is_some_and(is_true), name },
            _ => {
                // Here the comparison ignores case in ASCII only.
                let is_false = |value: &[u8]| value == b"0" || value.eq_ignore_ascii_case(b"false");
                ListOptions { watch: watch.is_some_and(|value| !is_false(value)), name: None }
            }
        }
    }
}

/// Everything is true except `0` and `false` in any case, where a long `s` (U+017F) counts as `s`.
fn is_true(value: &[u8]) -> bool {
    let value = String::from_utf8_lossy(value).replace('\u{17f}', "s");
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// An invalid field selector.
#[derive(Debug, PartialEq, Eq)]
struct InvalidSelector;

/// The name that a field selector requires, if it can be a segment of a path.
fn exact_name(selector: &str) -> Result<Option<String>, InvalidSelector> {
    let mut terms = split_terms(selector);
    // Kubernetes uses the first match in sorted order.
    terms.sort_unstable();
    let mut found = None;
    for term in terms.into_iter().filter(|term| !term.is_empty()) {
        let (field, is_equal, value) = split_term(term).ok_or(InvalidSelector)?;
        let value = unescape(value)?;
        if field == "metadata.name" && is_equal && found.is_none() {
            found = Some(value);
        }
    }
    let is_segment = |name: &String| name != "." && name != ".." && !name.contains(['/', '%']);
    Ok(found.filter(is_segment))
}

/// Splits at commas that no backslash escapes.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let is_separator = |character: char| {
        let separates = character == ',' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        separates
    };
    selector.split(is_separator).collect()
}

/// Field, whether the operator requires equality, and value: at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let equals = term.find('=')?;
    let (before, value) = (term.get(..equals)?, term.get(equals.saturating_add(1)..)?);
    if let Some(field) = before.strip_suffix('!') {
        return Some((field, false, value));
    }
    Some((before, true, value.strip_prefix('=').unwrap_or(value)))
}

/// A value without its backslashes, which escape `\`, `,` and `=`.
fn unescape(value: &str) -> Result<String, InvalidSelector> {
    let mut unescaped = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => unescaped.push(escaped),
                _ => return Err(InvalidSelector),
            },
            ',' | '=' => return Err(InvalidSelector),
            other => unescaped.push(other),
        }
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_selector_requires_a_name() {
        let name = |name: &str| Ok(Some(name.to_owned()));
        for (selector, expected) in [
            ("", Ok(None)),
            ("metadata.name=a", name("a")),
            ("metadata.name==a", name("a")),
            ("metadata.name!=a", Ok(None)),
            ("metadata.name=", name("")),
            ("spec.nodeName=n,metadata.name=a", name("a")),
            ("metadata.name=b,metadata.name=a", name("a")),
            ("metadata.name=a,metadata.name==b", name("b")),
            (r"metadata.name=a\,b\=c\\", name(r"a,b=c\")),
            (r"a\,metadata.name=b", Ok(None)),
            ("metadata.name=..", Ok(None)),
            ("metadata.name=a/b", Ok(None)),
            (",,metadata.name=a,", name("a")),
            ("metadata.name", Err(InvalidSelector)),
            ("metadata.name===a", Err(InvalidSelector)),
            ("metadata.name=a,b", Err(InvalidSelector)),
            (r"metadata.name=a\b", Err(InvalidSelector)),
            (r"metadata.name=a\", Err(InvalidSelector)),
        ] {
            assert_eq!(exact_name(selector), expected, "{selector}");
        }
    }

    #[test]
    fn skips_pairs_that_go_cannot_parse() {
        let parameters = Parameters::read("a=1;b=2&a=%zz&&=x&a=%31+&a=3&c");
        assert_eq!(parameters.first("a").map(|value| &**value), Some(&b"1 "[..]));
        assert_eq!(parameters.first("c").map(|value| &**value), Some(&b""[..]));
        assert!(parameters.first("b").is_none());
        assert!(Parameters::read(&"a=1&".repeat(MAX_PARAMETERS)).first("a").is_none());
        assert!(Parameters::read(&"a=1&".repeat(MAX_PARAMETERS - 1)).first("a").is_some());
    }
}
