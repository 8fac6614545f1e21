//! Solutions for texts: prefixes, suffixes, patterns, concatenation and lengths.

use navicert_cel::syntax::ast::{Node, NodeId};
use serde_json::{Value, json};

use super::{Assignment, Solver};

/// Longest text or list that is made to have a size.
const MAX_SIZE: u64 = 300;

impl Solver<'_> {
    /// `text.startsWith(part)` and its kind.
    pub(super) fn part_of_text(
        self,
        name: &str,
        text: NodeId,
        part: NodeId,
        wanted: bool,
    ) -> Vec<Assignment> {
        let Some(Value::String(part)) = self.literal(part) else { return Vec::new() };
        let values = match (name, wanted) {
            ("matches", true) => sample(&part).into_iter().collect(),
            ("matches", false) => vec![String::new(), " x".to_owned()],
            (_, false) => vec!["x".to_owned(), without_last(&part)],
            ("startsWith", true) => vec![format!("{part}x"), part.clone()],
            ("endsWith", true) => vec![format!("x{part}"), part.clone()],
            _ => vec![format!("x{part}x"), part.clone()],
        };
        values.into_iter().flat_map(|value| self.equals(text, &json!(value))).collect()
    }

    /// The value whose size a node is.
    pub(super) fn measured(self, id: NodeId) -> Option<NodeId> {
        let Node::Call { function, target, args } = self.tree.node(id) else { return None };
        match (self.tree.function_name(function), target, self.tree.children(args)) {
            ("size", Some(operand), []) | ("size", None, &[operand]) => Some(operand),
            _ => None,
        }
    }

    /// Claims for which a node has this size: a list and a text.
    pub(super) fn of_size(self, id: NodeId, size: u64) -> Vec<Assignment> {
        let Some(count) = usize::try_from(size).ok().filter(|_| size <= MAX_SIZE) else { return Vec::new() };
        let list: Vec<String> = (0..count).map(|number| format!("x{number}")).collect();
        let mut found = self.equals(id, &json!(list));
        found.extend(self.equals(id, &json!("x".repeat(count))));
        found
    }

    /// `left + right == value`, of texts and of lists.
    pub(super) fn sum_equals(self, left: NodeId, right: NodeId, value: &Value) -> Vec<Assignment> {
        let literals = (self.literal(left), self.literal(right));
        match (value, literals) {
            (Value::String(text), (Some(Value::String(prefix)), None)) => match text.strip_prefix(&*prefix) {
                Some(rest) => self.equals(right, &json!(rest)),
                None => self.equals(right, value),
            },
            (Value::String(text), (None, Some(Value::String(suffix)))) => match text.strip_suffix(&*suffix) {
                Some(rest) => self.equals(left, &json!(rest)),
                None => self.equals(left, value),
            },
            (Value::String(_), (None, None)) => {
                super::product(&self.equals(left, value), &self.equals(right, &json!("")))
            }
            (Value::Array(_), (None, _)) => self.equals(left, value),
            (Value::Array(_), (Some(_), None)) => self.equals(right, value),
            _ => Vec::new(),
        }
    }
}

fn without_last(text: &str) -> String {
    let mut text = text.to_owned();
    text.pop();
    text
}

/// A text that a simple pattern matches: literals, classes, groups, alternatives and repetition.
pub(crate) fn sample(pattern: &str) -> Option<String> {
    let mut rest = pattern.chars().peekable();
    let text = alternatives(&mut rest)?;
    rest.next().is_none().then_some(text)
}

type Chars<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// The first alternative; the others are read.
fn alternatives(rest: &mut Chars<'_>) -> Option<String> {
    let first = sequence(rest)?;
    while rest.peek() == Some(&'|') {
        rest.next();
        sequence(rest)?;
    }
    Some(first)
}

fn sequence(rest: &mut Chars<'_>) -> Option<String> {
    let mut text = String::new();
    while let Some(&next) = rest.peek() {
        if matches!(next, '|' | ')') {
            break;
        }
        let part = atom(rest)?;
        text += &part.repeat(repetition(rest)?);
    }
    Some(text)
}

fn atom(rest: &mut Chars<'_>) -> Option<String> {
    match rest.next()? {
        '^' | '$' => Some(String::new()),
        '.' => Some("x".to_owned()),
        '(' => {
            if rest.peek() == Some(&'?') {
                rest.next();
                match rest.next()? {
                    ':' => {}
                    _ => return None,
                }
            }
            let text = alternatives(rest)?;
            (rest.next()? == ')').then_some(text)
        }
        '[' => class(rest).map(String::from),
        '\\' => escaped(rest.next()?).map(String::from),
        '*' | '+' | '?' | '{' => None,
        other => Some(other.to_string()),
    }
}

/// One symbol of a class.
fn class(rest: &mut Chars<'_>) -> Option<char> {
    let negated = rest.peek() == Some(&'^');
    if negated {
        rest.next();
    }
    let mut members = Vec::new();
    loop {
        match rest.next()? {
            ']' if !members.is_empty() => break,
            '\\' => members.push(escaped(rest.next()?)?),
            other => members.push(other),
        }
    }
    match negated {
        false => members.first().copied(),
        true => ['x', '0', '-', 'é'].into_iter().find(|symbol| !members.contains(symbol)),
    }
}

fn escaped(symbol: char) -> Option<char> {
    match symbol {
        'd' => Some('0'),
        'w' | 'S' | 'D' => Some('x'),
        's' | 'W' => Some(' '),
        'b' | 'B' | 'A' | 'z' | 'p' | 'P' | 'x' | 'Q' | 'E' | 'C' => None,
        'n' => Some('\n'),
        't' => Some('\t'),
        other => Some(other),
    }
}

/// How often the atom before occurs: as often as it has to, and at least once if it may.
fn repetition(rest: &mut Chars<'_>) -> Option<usize> {
    let count = match rest.peek() {
        Some('*' | '+' | '?') => {
            rest.next();
            1
        }
        Some('{') => {
            rest.next();
            let digits: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).collect();
            let least: usize = digits.parse().ok()?;
            while rest.next()? != '}' {}
            least.clamp(1, 100)
        }
        _ => return Some(1),
    };
    rest.next_if_eq(&'?');
    Some(count)
}
