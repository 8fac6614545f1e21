//! Renders a problem below the source line it refers to. Values that may be secrets are masked, because error messages
//! end up in terminals, tickets and logs.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use navicert_types::tree::Span;

use super::Output;

/// One problem in one file.
pub(crate) struct SnippetProblem<'a> {
    /// The file as the user named it.
    pub(crate) file: &'a str,
    /// The file's whole text.
    pub(crate) text: &'a str,
    /// Whether the span itself may be a secret: then even harmless fields of its line are masked.
    pub(crate) hidden: bool,
    /// Location of the problem.
    pub(crate) span: Span,
    /// Error message.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) hint: Option<String>,
    /// Error rather than warning.
    pub(crate) fatal: bool,
}

/// Prints a problem with secrets masked. After many of a kind, problems are only counted.
pub(crate) fn print(problem: &SnippetProblem<'_>, output: &mut Output) {
    output.snippet(problem.fatal, || plain_message(problem), || render(problem));
}

/// Prints a problem of a file that holds no secrets. After many of a kind, problems are only counted.
pub(crate) fn print_open(problem: &SnippetProblem<'_>, output: &mut Output) {
    output.snippet(problem.fatal, || plain_message(problem), || render_open(problem));
}

/// The problem without its source line.
fn plain_message(problem: &SnippetProblem<'_>) -> String {
    let SnippetProblem { file, span, message, .. } = problem;
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{file}:{}:{}: {message}{hint}", span.line, span.column)
}

/// Renders the problem for a terminal, with secrets masked.
pub(crate) fn render(problem: &SnippetProblem<'_>) -> String {
    let shown = if problem.hidden { &[] } else { HARMLESS_FIELDS };
    draw(problem, masked_line(problem.text, problem.span, shown))
}

/// Renders the problem for a terminal, for a file that holds no secrets: its line is shown unmasked.
pub(crate) fn render_open(problem: &SnippetProblem<'_>) -> String {
    let line = line_of(problem.text, problem.span);
    draw(problem, (line.to_owned(), place_in(line, line, problem.span)))
}

fn draw(problem: &SnippetProblem<'_>, (line, range): (String, Range<usize>)) -> String {
    let level = if problem.fatal { Level::ERROR } else { Level::WARNING };
    let title = level.primary_title(problem.message.as_str());
    let snippet = Snippet::source(line.as_str())
        .path(problem.file)
        .line_start(problem.span.line)
        .fold(false)
        .annotation(AnnotationKind::Primary.span(range));
    let mut group = title.element(snippet);
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    Renderer::styled().render(&[group])
}

/// Fields whose values are never secret; everything else is shown as `…`.
const HARMLESS_FIELDS: &[&str] = &[
    "apiVersion",
    "as",
    "cacheType",
    "certificate-authority",
    "client-certificate",
    "client-key",
    "cluster",
    "clusters",
    "command",
    "contexts",
    "current-context",
    "defaultCacheDuration",
    "disable-compression",
    "insecure-skip-tls-verify",
    "interactiveMode",
    "kind",
    "name",
    "namespace",
    "provideClusterInfo",
    "requireServiceAccount",
    "server",
    "tls-server-name",
    "tokenFile",
    "user",
    "users",
];

/// Fields whose values are lists of harmless words, in brackets or one to a line.
const HARMLESS_LIST_FIELDS: &[&str] = &["matchImages"];

/// The line of `span` with its secrets masked, and the bytes of it to underline.
fn masked_line(text: &str, span: Span, harmless: &[&str]) -> (String, Range<usize>) {
    let line = line_of(text, span);
    let key = key_of(line);
    let shown = match &key {
        _ if !harmless.is_empty() && is_harmless_list(text, line, span) => line.to_owned(),
        _ if line.trim() == "---" => line.to_owned(),
        Some(key) if key.value.is_empty() || harmless.contains(&key.name) => line.to_owned(),
        Some(key) => format!("{}…", key.before_value),
        None if line.trim().is_empty() => line.to_owned(),
        None => "…".to_owned(),
    };
    let range = place_in(line, &shown, span);
    (shown, range)
}

/// Whether the line is a harmless list, or an item of one. A pattern with user info in it (`ann:secret@host`) is not
/// harmless, and neither is anything that may begin another field.
fn is_harmless_list(text: &str, line: &str, span: Span) -> bool {
    let named = |line: &str| {
        let (name, value) = line.trim_start_matches([' ', '\t', '-']).split_once(':')?;
        HARMLESS_LIST_FIELDS.contains(&name).then(|| value.trim().to_owned())
    };
    if line.contains(['@', '{', '}', '&', '!', '|']) {
        return false;
    }
    if let Some(value) = named(line) {
        return value.starts_with('[') && value.ends_with(']');
    }
    let is_item = |line: &str| line.trim_start().starts_with("- ");
    let above = text.lines().take(span.line.saturating_sub(1)).collect::<Vec<_>>();
    let head = above.into_iter().rev().find(|line| !is_item(line) && !line.trim().is_empty());
    is_item(line) && head.is_some_and(|head| named(head).is_some_and(|value| value.is_empty()))
}

fn line_of(text: &str, span: Span) -> &str {
    text.lines().nth(span.line.saturating_sub(1)).unwrap_or_default().trim_end_matches('\r')
}

/// The bytes of the shown line that the span of the real one covers.
fn place_in(line: &str, shown: &str, span: Span) -> Range<usize> {
    let start: usize = line.chars().take(span.column.saturating_sub(1)).map(char::len_utf8).sum();
    let end = start.saturating_add(span.end.saturating_sub(span.start));
    let start = floor(shown, start.min(last_character(shown)));
    let end = floor(shown, end.clamp(start, shown.len()));
    start..end.max(start)
}

struct Key<'a> {
    name: &'a str,
    before_value: &'a str,
    value: &'a str,
}

/// A line of the plain form `- key: value`, in YAML or one field per line in JSON.
fn key_of(line: &str) -> Option<Key<'_>> {
    let colon = line.find(':')?;
    let (before, value) = line.split_at(colon + 1);
    if !(value.is_empty() || value.starts_with([' ', '\t'])) {
        return None;
    }
    let name = before.trim_end_matches(':').trim_start_matches([' ', '\t', '-', '?']).trim_matches('"');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let value = value.trim();
    // `key: {…}` and `key: […]` may hold other keys.
    let value_is_nested = value.starts_with(['{', '[', '&', '*', '!', '|', '>']);
    let name = if value_is_nested { "" } else { name };
    let space = line.get(colon + 1..).map_or(0, |rest| rest.len() - rest.trim_start().len());
    Some(Key { name, before_value: line.get(..colon + 1 + space)?, value })
}

fn last_character(text: &str) -> usize {
    text.char_indices().next_back().map_or(0, |(start, _)| start)
}

fn floor(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(line: &str) -> String {
        masked_line(line, Span { start: 0, end: 1, line: 1, column: 1 }, HARMLESS_FIELDS).0
    }

    #[test]
    fn values_are_masked_unless_the_field_is_harmless() {
        for (line, shown) in [
            ("    server: https://h", "    server: https://h"),
            ("    token: canary", "    token: …"),
            ("  - name: ann", "  - name: ann"),
            ("    \"token\": \"canary\",", "    \"token\": …"),
            ("    client-key-data:", "    client-key-data:"),
            ("      canary", "…"),
            ("{\"users\": [{\"user\": {\"token\": \"canary\"}}]}", "…"),
            ("  user: {token: canary}", "  user: …"),
            ("  name: &a canary", "  name: …"),
            ("proxy-url: http://u:canary@h", "proxy-url: …"),
            ("- https://u:canary@h", "…"),
            ("  server: !!str canary", "  server: …"),
            ("", ""),
        ] {
            assert_eq!(masked(line), shown);
        }
    }

    #[test]
    fn patterns_are_shown_unless_they_carry_a_password() {
        let masked = |text: &str, line| {
            masked_line(text, Span { start: 0, end: 1, line, column: 1 }, HARMLESS_FIELDS).0
        };
        for (text, line, shown) in [
            ("  matchImages: ['a.io/*', b.io]", 1, "  matchImages: ['a.io/*', b.io]"),
            ("- matchImages: [a.io]", 1, "- matchImages: [a.io]"),
            ("  matchImages: ['u:canary@a.io']", 1, "  matchImages: …"),
            ("  matchImages: [a.io], env: [{name: A, value: canary}]", 1, "  matchImages: …"),
            ("  matchImages:\n  - a.io\n\n  - 'https://b.io'", 4, "  - 'https://b.io'"),
            ("  matchImages:\n  - u:canary@a.io", 2, "…"),
            ("  args:\n  - canary", 2, "…"),
            ("  matchImages: [a.io]\n  args:\n  - canary", 3, "…"),
            ("  matchImages:\n  - a.io\n  args: [canary]", 3, "  args: …"),
            ("---", 1, "---"),
        ] {
            assert_eq!(masked(text, line), shown, "{text}");
        }
    }

    #[test]
    fn span_that_may_be_a_secret_masks_even_harmless_fields() {
        let span = Span { start: 0, end: 1, line: 1, column: 9 };
        assert_eq!(masked_line("  name: canary", span, &[]).0, "  name: …");
    }

    #[test]
    fn the_underline_stays_inside_the_masked_line() {
        for (line, column, length) in
            [("token: cänary", 8, 7), ("token: x", 400, 9), ("", 1, 1), ("ä: ö", 4, 2)]
        {
            let span = Span { start: 0, end: length, line: 1, column };
            let (shown, range) = masked_line(line, span, HARMLESS_FIELDS);
            assert!(shown.get(range.clone()).is_some(), "{shown:?} {range:?}");
        }
    }

    #[test]
    fn rendered_problem_names_file_line_and_fix() {
        let problem = SnippetProblem {
            file: "a.yaml",
            text: "kind: Config\ntoken: canary\n",
            hidden: false,
            span: Span { start: 20, end: 26, line: 2, column: 8 },
            message: "token: expected a string".to_owned(),
            hint: Some("put it in quotes".to_owned()),
            fatal: true,
        };
        let drawn = anstream::adapter::strip_str(&render(&problem)).to_string();
        assert!(drawn.starts_with("error: token: expected a string\n"), "{drawn}");
        assert!(drawn.contains("a.yaml:2:8"), "{drawn}");
        assert!(drawn.contains("help: put it in quotes"), "{drawn}");
        assert!(!drawn.contains("canary"), "{drawn}");
    }
}
