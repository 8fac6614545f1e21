//! RE2 as implemented in Go: valid and invalid patterns, and matches.

use super::{Fault, Pattern};
use proptest::prelude::*;

#[test]
fn perl_classes_are_ascii_only() {
    // S72; cel.jsonl "regex"
    for (pattern, text, matches) in [
        (r"^\w$", "é", false),
        (r"^\w$", "_", true),
        (r"^\d$", "٣", false),
        (r"^\d$", "3", true),
        (r"^\s$", "\u{b}", false),
        (r"^\s$", "\u{c}", true),
        (r"^\s$", "\u{a0}", false),
        (r"^[[:space:]]$", "\u{b}", true),
        (r"^\W$", "é", true),
        (r"^[^\w]$", "é", true),
        (r"é\b", "é", false),
        (r"a\b", "aé", true),
        (r"\B", "é", true),
        // Matches around the é, not at the `\B` inside it.
        (r"(([ab]|\B)|(b|é))(\Bé)??", "5é_", true),
        (r"^[a&&b]+$", "a&b", true),
        (r"^[+--b]+$", "-,+b", true),
        (r"^[a~~b]+$", "~", true),
        (r"^[[a]$", "[", true),
        (r"^[]a]+$", "]a", true),
        (r"^[^]a]$", "b", true),
        (r"^[\d-z]+$", "5-z", true),
        (r"^[a-]+$", "-a", true),
        (r"^\pL$", "é", true),
        (r"^\p{Greek}$", "α", true),
        (r"^\P{Greek}$", "α", false),
        (r"^\p{^greek}$", "a", true),
        (r"^\p{Uppercase_Letter}$", "A", true),
        (r"^[^\x00-\x{10FFFF}]$", "a", false),
        (r"^[\x{D000}-\x{E000}]$", "\u{e000}", true),
    ] {
        assert_eq!(Pattern::new(pattern).unwrap().is_match(text), matches, "{pattern} {text:?}");
    }
}

#[test]
fn parses_escapes_and_braces_as_re2() {
    for (pattern, text) in [
        (r"^\Qa.b*\E*$", "a.b***"),
        (r"^\Qa.b", "a.b"),
        (r"^\Q\E$", ""),
        (r"^\123$", "S"),
        (r"^\12$", "\n"),
        (r"^\08$", "\08"),
        (r"^a{,5}$", "a{,5}"),
        (r"^a{$", "a{"),
        (r"^a{01}$", "a{01}"),
        (r"^a{2,3}$", "aaa"),
        (r"^a{0}$", ""),
        (r"^\x41\x{e9}$", "Aé"),
        (r"^\_\-\ $", "_- "),
        (r"^\a\f\v$", "\u{7}\u{c}\u{b}"),
        (r"^a(?i)b$", "aB"),
        // A repetition after a flag applies to the preceding expression.
        (r"^a(?i)*$", "aaa"),
        (r"^(?i:a)b$", "Ab"),
        (r"(?m)^b$", "a\nb\nc"),
        (r"^(?s).$", "\n"),
        (r"^(?)a$", "a"),
        (r"^(?P<x>a)(?<y>b)$", "ab"),
        (r"^()*a||b$", "a"),
        (r"(?i)^k\w$", "\u{212a}\u{17f}"),
    ] {
        assert!(Pattern::new(pattern).unwrap().is_match(text), "{pattern} {text:?}");
    }
    assert!(!Pattern::new("a$").unwrap().is_match("a\n"), "`$` is the end of the text, not of a line");
    assert!(!Pattern::new(r"\x{D800}").unwrap().is_match("a"), "no text holds a surrogate");
    assert!(!Pattern::new(r"(?-s).").unwrap().is_match("\n"));
}

#[test]
fn rejects_invalid_patterns_with_the_messages_of_go() {
    use Fault::*;
    for (pattern, fault, part) in [
        ("(", MissingParenthesis, "("),
        ("a)b", UnexpectedParenthesis, "a)b"),
        ("x[a", MissingBracket, "[a"),
        ("*", MissingArgument, "*"),
        ("a|*", MissingArgument, "*"),
        ("(?i)*", MissingArgument, "*"),
        ("{5}", MissingArgument, "{5}"),
        ("a**", NestedRepetition, "**"),
        ("a*+", NestedRepetition, "*+"),
        ("a{2}{3}", NestedRepetition, "{2}{3}"),
        ("a{1001}", RepeatCount, "{1001}"),
        ("a{3,2}", RepeatCount, "{3,2}"),
        ("a{99999999999}", RepeatCount, "{99999999999}"),
        ("(a{100}){11}", RepeatCount, "{11}"),
        ("((a{10}){10}b{1,2}){11}", RepeatCount, "{11}"),
        ("((a{1000})*){2}", RepeatCount, "{2}"),
        (r"\8", Escape, r"\8"),
        (r"\1", Escape, r"\1"),
        (r"\Z", Escape, r"\Z"),
        (r"\C", Escape, r"\C"),
        (r"\E", Escape, r"\E"),
        (r"\é", Escape, r"\é"),
        (r"[\Qa\E]", Escape, r"\Q"),
        (r"[a-\d]", Escape, r"\d"),
        (r"\", TrailingBackslash, ""),
        ("[z-a]", ClassRange, "z-a"),
        ("[[:foo:]]", ClassRange, "[:foo:]"),
        (r"\p{Foo}", ClassRange, r"\p{Foo}"),
        (r"\p{Alphabetic}", ClassRange, r"\p{Alphabetic}"),
        (r"\p{sc=Greek}", ClassRange, r"\p{sc=Greek}"),
        ("(?x)a", PerlSyntax, "(?x"),
        ("(?u)a", PerlSyntax, "(?u"),
        ("(?R)a", PerlSyntax, "(?R"),
        ("(?=a)", PerlSyntax, "(?="),
        ("(?-)", PerlSyntax, "(?-)"),
        ("(?i", PerlSyntax, "(?i"),
        ("(?P<>a)", NamedCapture, "(?P<>"),
        ("(?P<n>a)(?P<n>b)", NamedCapture, "(?P<n>"),
    ] {
        let error = Pattern::new(pattern).expect_err(pattern);
        assert_eq!((error.fault, error.part.as_str()), (fault, part), "{pattern}");
    }
    assert_eq!(Pattern::new("(").unwrap_err().to_string(), "error parsing regexp: missing closing ): `(`");
}

#[test]
fn accepts_nested_counts_up_to_a_product_of_1000() {
    for pattern in
        ["(a{100}){10}", "(a{10}b{100}){10}", "((a{1000}){0,}){2}", "((a{1000}){0}){2}", "(a*){1000}"]
    {
        assert!(Pattern::new(pattern).is_ok(), "{pattern}");
    }
}

#[test]
fn finds_leftmost_first_matches_without_adjacent_empty_ones() {
    for (pattern, text, all) in [
        ("a*", "baac", &["", "aa", ""][..]),
        ("a|ab", "abab", &["a", "a"]),
        ("(?U)a+", "aaa", &["a", "a", "a"]),
        ("", "é", &["", ""]),
        (r"\b", "ab é", &["", ""]),
        ("[0-9]+", "a1b22c333", &["1", "22", "333"]),
        ("(|a)*", "aa", &["", "", ""]),
        ("(|a)+", "aa", &["", "", ""]),
        ("x", "abc", &[]),
    ] {
        let compiled = Pattern::new(pattern).unwrap();
        assert_eq!(compiled.find_all(text).collect::<Vec<_>>(), all, "{pattern}");
        assert_eq!(compiled.find(text), all.first().copied(), "{pattern}");
    }
}

#[test]
fn rejects_deep_and_large_patterns_on_a_small_stack() {
    let run = || {
        let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "a" + &close.repeat(depth);
        assert!(Pattern::new(&nested("(", ")", 1000)).is_ok());
        assert_eq!(Pattern::new(&nested("(", ")", 1001)).unwrap_err().fault, Fault::TooDeep);
        assert!(Pattern::new(&nested("(b|c", ")*", 80)).is_ok());
        for pattern in [nested("(b|c", ")*", 900), nested("(?:b|", ")+d", 900), nested("(?:", "b?)??", 900)] {
            assert_eq!(Pattern::new(&pattern).unwrap_err().fault, Fault::TooDeep);
        }
        for pattern in
            [r"\pL{1000}".to_owned(), "a".repeat(3400) + "{1000}", format!("({}){{1000}}", "a".repeat(3400))]
        {
            let _ = Pattern::new(&pattern);
        }
        assert_eq!(
            Pattern::new(&format!("({}){{1000}}", "a".repeat(3400))).unwrap_err().fault,
            Fault::TooLarge
        );
        assert_eq!(Pattern::with_size_limit("[^@]{500}", 1 << 10).unwrap_err().fault, Fault::TooLarge);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

proptest! {
    #[test]
    fn quoted_text_matches_only_itself(text in "\\PC{0,12}", other in "\\PC{0,12}") {
        prop_assume!(!text.contains("\\E"));
        let compiled = Pattern::new(&format!("^\\Q{text}\\E$")).unwrap();
        prop_assert!(compiled.is_match(&text));
        prop_assert_eq!(compiled.is_match(&other), other == text);
    }

    #[test]
    fn compiling_patterns_never_panics(pattern in "[\\[\\](){}|*+?^$\\\\a-cé0-9,:<>PQEpdwi-]{0,16}", text in "[a-cé0-9]{0,6}") {
        if let Ok(compiled) = Pattern::new(&pattern) {
            prop_assert_eq!(compiled.is_match(&text), compiled.find(&text).is_some());
            prop_assert_eq!(compiled.find(&text), compiled.find_all(&text).next());
        }
    }
}
