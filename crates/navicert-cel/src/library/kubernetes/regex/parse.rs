//! Parses a pattern into the tree that the engine compiles. Keeps open groups on an explicit stack instead of
//! recursing, so nesting uses the heap and is limited.

use super::class::{self, Class};
use super::escape::{self, Escape};
use super::{Fault, PatternError};
use regex_syntax::hir::{Dot, Hir, Look, Repetition};

/// Maximum repeat count, and maximum product of nested counts.
const REPEAT_LIMIT: u32 = 1000;
/// Maximum number of open groups, as in RE2.
const GROUP_LIMIT: usize = 1000;
/// Maximum height of the tree; the compiler recurses over it.
const HEIGHT_LIMIT: u32 = 250;
/// Maximum number of instructions in Go's program for the pattern.
const SIZE_LIMIT: u64 = (128 << 20) / 40;

/// The flags of `(?imsU)`.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) fold_case: bool,
    multi_line: bool,
    dot_newline: bool,
    swap_greed: bool,
}

pub(super) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    let mut parser = Parser {
        pattern,
        rest: pattern,
        flags: Flags::default(),
        names: Vec::new(),
        groups: Vec::new(),
        open: Group::default(),
    };
    while !parser.rest.is_empty() {
        parser.token()?;
    }
    if !parser.groups.is_empty() {
        return Err(PatternError::new(Fault::MissingParenthesis, pattern));
    }
    Ok(parser.open.close()?.tree)
}

struct Parser<'p> {
    pattern: &'p str,
    rest: &'p str,
    flags: Flags,
    names: Vec<&'p str>,
    groups: Vec<(Group<'p>, Flags)>,
    open: Group<'p>,
}

/// A subtree with the figures needed for RE2's limits.
struct Fragment {
    tree: Hir,
    height: u32,
    /// The largest product of repeat counts on a path through the subtree.
    repeats: u32,
    size: u64,
}

/// The content of a group, or the whole pattern.
#[derive(Default)]
struct Group<'p> {
    alternatives: Vec<Fragment>,
    sequence: Vec<Fragment>,
    /// The text starting at the last repetition operator, if it was the last token.
    last_repeat: Option<&'p str>,
}

impl<'p> Parser<'p> {
    fn token(&mut self) -> Result<(), PatternError> {
        let start = self.rest;
        let last_repeat = self.open.last_repeat.take();
        let mut symbols = start.chars();
        let Some(symbol) = symbols.next() else { return Ok(()) };
        self.rest = symbols.as_str();
        match symbol {
            '(' => return self.open_group(start),
            ')' => return self.close_group(),
            '|' => self.open.end_alternative(),
            '^' if self.flags.multi_line => self.push(Hir::look(Look::StartLF)),
            '^' => self.push(Hir::look(Look::Start)),
            '$' if self.flags.multi_line => self.push(Hir::look(Look::EndLF)),
            '$' => self.push(Hir::look(Look::End)),
            '.' if self.flags.dot_newline => self.push(Hir::dot(Dot::AnyChar)),
            '.' => self.push(Hir::dot(Dot::AnyCharExceptLF)),
            '[' => {
                let (class, rest) = class::parse_bracket(start, self.flags.fold_case)?;
                self.rest = rest;
                self.push(class.into_tree());
            }
            '*' => return self.repeat(0, None, start, last_repeat),
            '+' => return self.repeat(1, None, start, last_repeat),
            '?' => return self.repeat(0, Some(1), start, last_repeat),
            '{' => match repeat_counts(self.rest) {
                Some((min, max, rest)) => {
                    self.rest = rest;
                    return self.repeat(min, max, start, last_repeat);
                }
                None => self.literal('{'),
            },
            '\\' => return self.backslash(start),
            other => self.literal(other),
        }
        Ok(())
    }

    fn push(&mut self, tree: Hir) {
        self.open.sequence.push(Fragment { tree, height: 1, repeats: 1, size: 1 });
    }

    fn literal(&mut self, symbol: char) {
        let tree = if self.flags.fold_case {
            Class::from_range(symbol, symbol).folded().into_tree()
        } else {
            Hir::literal(symbol.encode_utf8(&mut [0; 4]).as_bytes())
        };
        self.push(tree);
    }

    fn backslash(&mut self, start: &'p str) -> Result<(), PatternError> {
        if let Some(rest) = start.strip_prefix("\\Q") {
            let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            quoted.chars().for_each(|symbol| self.literal(symbol));
            self.rest = rest;
            return Ok(());
        }
        let (escape, rest) = escape::parse(start, self.flags.fold_case)?;
        self.rest = rest;
        match escape {
            Escape::Symbol(Some(symbol)) => self.literal(symbol),
            // A surrogate never matches.
            Escape::Symbol(None) => self.push(Hir::fail()),
            Escape::Class(class) => self.push(class.into_tree()),
            Escape::Look(look) => self.push(Hir::look(look)),
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        start: &'p str,
        last_repeat: Option<&'p str>,
    ) -> Result<(), PatternError> {
        let operator = text_before(start, self.rest);
        let bounds_fit = min <= REPEAT_LIMIT && max.is_none_or(|max| max <= REPEAT_LIMIT && min <= max);
        if !bounds_fit {
            return Err(PatternError::new(Fault::RepeatCount, operator));
        }
        let mut greedy = !self.flags.swap_greed;
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
            greedy = !greedy;
        }
        if let Some(first) = last_repeat {
            return Err(PatternError::new(Fault::NestedRepetition, text_before(first, self.rest)));
        }
        let Some(argument) = self.open.sequence.pop() else {
            return Err(PatternError::new(Fault::MissingArgument, text_before(start, self.rest)));
        };
        let counted = operator.starts_with('{');
        let repeated = argument.repeated(min, max, greedy, counted);
        if counted && repeated.repeats > REPEAT_LIMIT {
            return Err(PatternError::new(Fault::RepeatCount, text_before(start, self.rest)));
        }
        self.open.sequence.push(repeated.within_limits()?);
        self.open.last_repeat = Some(start);
        Ok(())
    }

    fn open_group(&mut self, start: &'p str) -> Result<(), PatternError> {
        let outer = self.flags;
        if start.starts_with("(?") && !self.perl_group(start)? {
            // `(?i)` sets flags for the rest of this group and opens no group.
            return Ok(());
        }
        if self.groups.len() >= GROUP_LIMIT {
            return Err(PatternError::new(Fault::TooDeep, self.pattern));
        }
        self.groups.push((std::mem::take(&mut self.open), outer));
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), PatternError> {
        let Some((outer, flags)) = self.groups.pop() else {
            return Err(PatternError::new(Fault::UnexpectedParenthesis, self.pattern));
        };
        let inner = std::mem::replace(&mut self.open, outer).close()?;
        self.open.sequence.push(inner);
        self.flags = flags;
        Ok(())
    }

    /// Parses `(?P<name>`, `(?<name>`, `(?flags:` or `(?flags)` and returns whether it opens a group.
    fn perl_group(&mut self, start: &'p str) -> Result<bool, PatternError> {
        for opening in ["(?P<", "(?<"] {
            if let Some(rest) = start.strip_prefix(opening) {
                let Some((name, rest)) = rest.split_once('>') else {
                    return Err(PatternError::new(Fault::NamedCapture, start));
                };
                let legal = !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                    && !self.names.contains(&name);
                if !legal {
                    return Err(PatternError::new(Fault::NamedCapture, text_before(start, rest)));
                }
                self.names.push(name);
                self.rest = rest;
                return Ok(true);
            }
        }
        self.flag_group(start)
    }

    fn flag_group(&mut self, start: &'p str) -> Result<bool, PatternError> {
        let mut flags = self.flags;
        let (mut value, mut pending) = (true, false);
        let mut symbols = start.chars();
        symbols.by_ref().take(2).for_each(drop);
        while let Some(symbol) = symbols.next() {
            let flag = match symbol {
                'i' => &mut flags.fold_case,
                'm' => &mut flags.multi_line,
                's' => &mut flags.dot_newline,
                'U' => &mut flags.swap_greed,
                '-' if value => {
                    (value, pending) = (false, true);
                    continue;
                }
                // A minus sign must be followed by a flag.
                ':' | ')' if !pending => {
                    self.flags = flags;
                    self.rest = symbols.as_str();
                    return Ok(symbol == ':');
                }
                _ => return Err(PatternError::new(Fault::PerlSyntax, text_before(start, symbols.as_str()))),
            };
            *flag = value;
            pending = false;
        }
        Err(PatternError::new(Fault::PerlSyntax, start))
    }
}

impl Fragment {
    fn repeated(self, min: u32, max: Option<u32>, greedy: bool, counted: bool) -> Self {
        let size = match (min, max) {
            _ if !counted => self.size + 1,
            (0, None) => self.size + 2,
            (min, None) => 1 + u64::from(min) * self.size,
            (min, Some(max)) => u64::from(max) * self.size + u64::from(max - min),
        };
        // As in RE2, a repetition of at most (or at least) 0 times resets the product of the nested counts.
        let factor = if counted { max.unwrap_or(min) } else { 1 };
        Self {
            tree: Hir::repetition(Repetition { min, max, greedy, sub: Box::new(self.tree) }),
            height: self.height + 1,
            repeats: if factor == 0 { 1 } else { self.repeats.saturating_mul(factor) },
            size: size.max(1),
        }
    }

    fn joined(parts: Vec<Self>, separator_size: u64, join: fn(Vec<Hir>) -> Hir) -> Self {
        let (mut height, mut repeats, mut size) = (0, 1, 0);
        for part in &parts {
            height = height.max(part.height);
            repeats = repeats.max(part.repeats);
            size += part.size + separator_size;
        }
        let several = parts.len() > 1;
        let tree = join(parts.into_iter().map(|part| part.tree).collect());
        Self { tree, height: height + u32::from(several), repeats, size: size.max(1) }
    }

    fn within_limits(self) -> Result<Self, PatternError> {
        if self.height > HEIGHT_LIMIT {
            return Err(PatternError::new(Fault::TooDeep, ""));
        }
        if self.size > SIZE_LIMIT {
            return Err(PatternError::new(Fault::TooLarge, ""));
        }
        Ok(self)
    }
}

impl Group<'_> {
    fn end_alternative(&mut self) {
        let sequence = std::mem::take(&mut self.sequence);
        self.alternatives.push(Fragment::joined(sequence, 0, Hir::concat));
    }

    fn close(mut self) -> Result<Fragment, PatternError> {
        self.end_alternative();
        Fragment::joined(self.alternatives, 1, Hir::alternation).within_limits()
    }
}

/// Parses `5}`, `5,}` or `5,7}` after the brace into minimum, maximum and rest. With anything else, the brace is a
/// literal.
///
/// A count that does not fit the integer is returned as one above the limit.
fn repeat_counts(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (min, rest) = count(text)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((min, Some(min), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((min, None, rest));
    }
    let (max, rest) = count(rest)?;
    Some((min, Some(max), rest.strip_prefix('}')?))
}

fn count(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

/// The part of `text` before its suffix `rest`.
pub(super) fn text_before<'a>(text: &'a str, rest: &str) -> &'a str {
    text.len().checked_sub(rest.len()).and_then(|end| text.get(..end)).unwrap_or(text)
}
