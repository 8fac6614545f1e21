//! Compares the tree with Kubernetes' result for the same text. The expected JSON is from sigs.k8s.io/yaml 1.6.

use proptest::prelude::*;

use super::*;
use crate::diagnostic::DiagnosticKind;

fn json_of(yaml: &str) -> String {
    parse(yaml.as_bytes(), Syntax::Yaml).unwrap_or_else(|error| panic!("{yaml:?}: {error}")).to_json()
}

fn rejection(text: &[u8], syntax: Syntax) -> Diagnostic {
    parse(text, syntax).expect_err(&String::from_utf8_lossy(text))
}

#[test]
fn plain_scalars_follow_yaml_1_1() {
    let cases = [
        ("y", "true"),
        ("Yes", "true"),
        ("ON", "true"),
        ("n", "false"),
        ("off", "false"),
        ("yEs", r#""yEs""#),
        ("~", "null"),
        ("Null", "null"),
        ("''", r#""""#),
        ("'yes'", r#""yes""#),
        ("\"12\"", r#""12""#),
        ("017", "15"),
        ("0o17", "15"),
        ("08", "8"),
        ("0x1F", "31"),
        ("-0b11", "-3"),
        ("1_000", "1000"),
        ("0x", r#""0x""#),
        ("+12", "12"),
        ("_1", r#""_1""#),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("1e3", "1000"),
        ("1.0", "1"),
        (".5", "0.5"),
        (".1_0", "0.1"),
        ("._1", r#""._1""#),
        ("1.e3", "1000"),
        ("1e21", "1e+21"),
        ("1e-7", "1e-7"),
        ("1e999", r#""1e999""#),
        ("190:20:30", r#""190:20:30""#),
        ("2031-01-02", r#""2031-01-02""#),
        ("1.2.3", r#""1.2.3""#),
        ("0x1p3", r#""0x1p3""#),
    ];
    for (scalar, json) in cases {
        assert_eq!(json_of(&format!("a: {scalar}\n")), format!("{{\"a\":{json}}}"), "{scalar}");
    }
}

#[test]
fn tags_override_plain_scalar_resolution() {
    let cases = [
        ("!!str 12", r#""12""#),
        ("!!int '3'", "3"),
        ("!!float 3", "3"),
        ("!!bool 'on'", "true"),
        ("!!null ''", "null"),
        ("!!binary aGk=", r#""hi""#),
        ("!foo 12", r#""12""#),
        ("! 12", r#""12""#),
        ("!!map [1]", "[1]"),
        ("!!timestamp 2001-01-01", r#""2001-01-01""#),
        ("!<tag:yaml.org,2002:str> 1", r#""1""#),
    ];
    for (scalar, json) in cases {
        assert_eq!(json_of(&format!("a: {scalar}\n")), format!("{{\"a\":{json}}}"), "{scalar}");
    }
    for text in ["!!int 3.0", "!!null foo", "!!binary '?'", "!!timestamp foo", ".inf", "-.INF", ".nan"] {
        assert_eq!(rejection(format!("a: {text}").as_bytes(), Syntax::Yaml).kind, DiagnosticKind::Syntax);
    }
}

#[test]
fn keys_become_strings_as_kubernetes_spells_them() {
    let cases = [
        ("1", "1"),
        ("0x10", "16"),
        ("yes", "true"),
        ("1.5", "1.5"),
        ("1e6", "1e+06"),
        ("0.00001", "1e-05"),
        ("1e100", ".inf"),
        ("2001-01-01", "2001-01-01"),
        ("'1'", "1"),
    ];
    for (key, name) in cases {
        assert_eq!(json_of(&format!("{key}: a")), format!("{{\"{name}\":\"a\"}}"));
    }
    for text in ["null: 1", "~: 1", "18446744073709551615: a", "[a]: b", "{a: b}: c"] {
        rejection(text.as_bytes(), Syntax::Yaml);
    }
}

#[test]
fn last_of_repeated_keys_wins_and_repetition_is_recorded() {
    let node = parse(b"a: 1\nb: 2\na: 3\n", Syntax::Yaml).unwrap();
    assert_eq!(node.to_json(), r#"{"a":3,"b":2}"#);
    let repeated: Vec<_> =
        node.as_mapping().unwrap().entries().iter().map(|e| (e.key.as_str(), e.repeated)).collect();
    assert_eq!(repeated, [("a", false), ("b", false), ("a", true)]);
}

#[test]
fn repetition_is_recorded_in_mappings_of_every_size() {
    for size in 1..60 {
        for again in [0, size / 2, size - 1] {
            let keys = (0..size).chain([again, size]).map(|key| format!("k{key}: 1\n"));
            let node = parse(keys.collect::<String>().as_bytes(), Syntax::Yaml).unwrap();
            let entries = node.as_mapping().unwrap().entries().iter().enumerate();
            let repeated: Vec<_> = entries.filter(|(_, entry)| entry.repeated).map(|(at, _)| at).collect();
            assert_eq!(repeated, [size], "{again} of {size} again");
        }
    }
}

#[test]
fn merge_keys_count_at_their_position() {
    let cases = [
        ("<<: {a: 2}\na: 1", r#"{"a":1}"#),
        ("a: 1\n<<: {a: 2}", r#"{"a":2}"#),
        ("<<: [{a: 1}, {a: 2, b: 3}]", r#"{"a":1,"b":3}"#),
        ("'<<': {a: 1}", r#"{"<<":{"a":1}}"#),
        ("x: &x {a: 1}\nz: {<<: *x, b: 2}", r#"{"x":{"a":1},"z":{"a":1,"b":2}}"#),
    ];
    for (yaml, json) in cases {
        assert_eq!(json_of(yaml), json, "{yaml}");
    }
    for text in ["<<: 3", "<<: [3]", "<<:"] {
        rejection(text.as_bytes(), Syntax::Yaml);
    }
}

#[test]
fn only_the_first_document_counts() {
    for yaml in ["a: 1\n---\nb: 2\n", "---\na: 1\n---\n}{", "a: 1\n...\n}{", "{a: 1} x", "{a: 1} {b: 2}"] {
        assert_eq!(json_of(yaml), r#"{"a":1}"#, "{yaml}");
    }
    for yaml in ["", "# only a comment\n", "---\n", "---\n---\na: 1\n", " \n\n"] {
        assert_eq!(json_of(yaml), "null", "{yaml:?}");
    }
}

#[test]
fn accepts_byte_order_marks_and_utf_16() {
    let utf16 = |mark: &str, bytes: fn(u16) -> [u8; 2]| {
        format!("{mark}a: ü\r\n").encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
    };
    for text in [
        "a: ü\n".as_bytes().to_vec(),
        "\u{FEFF}a: ü\r\n".as_bytes().to_vec(),
        utf16("\u{FEFF}", u16::to_le_bytes),
        utf16("\u{FEFF}", u16::to_be_bytes),
    ] {
        assert_eq!(parse(&text, Syntax::Yaml).unwrap().to_json(), r#"{"a":"ü"}"#);
        assert!(source_text(&text).starts_with("a: ü"));
    }
}

#[test]
fn adds_no_line_break_to_text_without_a_final_one() {
    assert_eq!(json_of("a: |\n  x"), r#"{"a":"x"}"#);
    assert_eq!(json_of("a: |\n  x\n"), r#"{"a":"x\n"}"#);
}

#[test]
fn yaml_syntax_errors_have_a_position_and_no_content() {
    let cases: [(&[u8], usize, usize); 8] = [
        (b"\n \ta: s3cret", 2, 2),
        (b"a: [1, s3cret\n", 1, 4),
        (b"a: b: s3cret\n", 1, 5),
        (b"s3cret:\n\t- b\n", 2, 2),
        (b"s3cret: \xFF", 1, 9),
        (b"a: 1\ns3cret: x\x07y", 2, 10),
        (b"a: *s3cret\n", 1, 4),
        (b"%YAML 1.2\n---\na: 1\n", 2, 1),
    ];
    for (text, line, column) in cases {
        let error = rejection(text, Syntax::Yaml);
        let shown = String::from_utf8_lossy(text);
        assert_eq!((error.span.line, error.span.column), (line, column), "{shown}: {error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[test]
fn every_key_and_value_has_a_position() {
    for (text, syntax) in [
        ("ü: 1\nlist:\n- x: [deep]\n", Syntax::Yaml),
        ("{\"ü\": 1,\n\"list\": [\n{\"x\": [\"deep\"]}]}", Syntax::Json),
    ] {
        let node = parse(text.as_bytes(), syntax).unwrap();
        let list = node.as_mapping().unwrap().last("list").unwrap();
        assert_eq!((list.key_span.line, list.key_span.column), (2, 1), "{text}");
        let x = list.value.as_sequence().unwrap()[0].as_mapping().unwrap().last("x").unwrap();
        let deep = &x.value.as_sequence().unwrap()[0];
        let quoted = text.get(deep.span.start..deep.span.end).unwrap().trim_matches('"');
        assert_eq!((quoted, deep.span.line), ("deep", 3), "{text}");
        let outer = text.get(x.value.span.start..x.value.span.end).unwrap();
        assert!(outer.starts_with('[') && outer.ends_with(']'), "{outer}");
    }
}

#[test]
fn json_is_parsed_as_go_parses_it() {
    let cases: [(&[u8], &str); 9] = [
        (br#"{"a":1.5,"b":[true,null]}"#, r#"{"a":1.5,"b":[true,null]}"#),
        (b"{\"a\":\"x\xFF\xFEy\"}", "{\"a\":\"x\u{FFFD}\u{FFFD}y\"}"),
        (br#"{"a":"\ud83d\ude00\ud800x\udc00"}"#, "{\"a\":\"😀\u{FFFD}x\u{FFFD}\"}"),
        (br#"{"a":"\u0041\/\b\f\n\r\t\"\\"}"#, r#"{"a":"A/\b\f\n\r\t\"\\"}"#),
        (br#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (br#"{"a":1e400}"#, r#"{"a":1e400}"#),
        (br#"{"a":18446744073709551615,"b":-0}"#, r#"{"a":18446744073709551615,"b":0}"#),
        (b" \t\r\n[]\n", "[]"),
        (br#""\ud800\u0041""#, "\"\u{FFFD}A\""),
    ];
    for (text, json) in cases {
        assert_eq!(parse(text, Syntax::Json).unwrap().to_json(), json, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn rejects_invalid_json() {
    let invalid: [&[u8]; 26] = [
        b"",
        b" ",
        b"{",
        b"}",
        b"[1,]",
        b"{\"a\":1,}",
        b"{a:1}",
        b"{'a':1}",
        b"[1 2]",
        b"{\"a\" 1}",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"1e",
        b"-",
        b"tru",
        b"nulL",
        b"\"a",
        b"\"\\x\"",
        b"\"\\u12\"",
        b"\"a\nb\"",
        b"{} x",
        b"{}{}",
        b"\xEF\xBB\xBF{}",
        b"// c\n{}",
    ];
    for text in invalid {
        assert_eq!(rejection(text, Syntax::Json).kind, DiagnosticKind::Syntax);
    }
    let error = rejection(b"{\n  \"token\": \"s3cret\n\"}", Syntax::Json);
    assert_eq!(error.to_string(), "line 2, column 19: control character in string must be escaped");
}

// C241
#[test]
fn an_opening_brace_makes_it_json_only() {
    assert!(parse(b" {\"a\": 1,}", Syntax::JsonOrYaml).is_err());
    assert!(parse(b" {\"a\": 1,}", Syntax::Yaml).is_ok());
    for yaml in ["\u{FEFF}{\"a\": 1}", "---\n{\"a\": 1}", "# c\n{a: 1}", "a: 1"] {
        assert_eq!(parse(yaml.as_bytes(), Syntax::JsonOrYaml).unwrap().to_json(), r#"{"a":1}"#, "{yaml}");
    }
}

fn on_a_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn rejects_depth_bombs_on_a_small_stack() {
    on_a_small_stack(|| {
        for bomb in ["[", "{\"a\":", "- ", "{a: ", "a: {b: ", "? ", "[[{"] {
            for syntax in [Syntax::Yaml, Syntax::Json] {
                rejection(bomb.repeat(200_000).as_bytes(), syntax);
            }
        }
        let depth = ParseLimits::default().depth;
        for syntax in [Syntax::Yaml, Syntax::Json] {
            let deepest = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let node = parse(deepest.as_bytes(), syntax).unwrap();
            assert_eq!(node.clone().to_json(), deepest);
            let deeper = rejection(format!("[{deepest}]").as_bytes(), syntax);
            assert_eq!(deeper.kind, DiagnosticKind::Limit);
        }
    });
}

#[test]
fn rejects_alias_bombs_on_a_small_stack() {
    on_a_small_stack(|| {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..40 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            laughs.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        assert_eq!(rejection(laughs.as_bytes(), Syntax::Yaml).kind, DiagnosticKind::Limit);

        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
        assert_eq!(rejection(long.as_bytes(), Syntax::Yaml).kind, DiagnosticKind::Limit);

        let mut ladder = "a0: &a0 [x]\n".to_owned();
        for level in 1..2_000 {
            ladder.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        assert_eq!(rejection(ladder.as_bytes(), Syntax::Yaml).kind, DiagnosticKind::Limit);

        for endless in ["a: &a [*a]", "&a {b: *a}", "&a a: *a\n? *a\n: &b {c: *b}"] {
            rejection(endless.as_bytes(), Syntax::Yaml);
        }
    });
}

#[test]
fn rejects_text_beyond_the_limits() {
    let limits = ParseLimits { bytes: 10, ..ParseLimits::default() };
    assert_eq!(parse_with(b"a: 1234567890", Syntax::Yaml, limits).unwrap_err().kind, DiagnosticKind::Limit);
    let limits = ParseLimits { nodes: 3, ..ParseLimits::default() };
    for (text, syntax) in [("[1, 2, 3]", Syntax::Yaml), ("[1, 2, 3]", Syntax::Json)] {
        assert_eq!(parse_with(text.as_bytes(), syntax, limits).unwrap_err().kind, DiagnosticKind::Limit);
    }
}

#[test]
fn debug_shows_shape_and_keys_only() {
    let node = parse(b"token: s3cret\nlist: [s3cret, 31337, true]\n", Syntax::Yaml).unwrap();
    let shown = format!("{node:?} {node:#?}");
    assert!(shown.contains("token") && !shown.contains("s3cret") && !shown.contains("31337"), "{shown}");
}

#[test]
fn long_key_is_written_in_the_explicit_form() {
    for key in ["k".repeat(2_000), "\u{1}".repeat(128), "ü: ".repeat(60)] {
        let (mut inner, mut outer) = (Mapping::default(), Mapping::default());
        inner.push(&key, vec![Node::new("x")]);
        outer.push(&key, inner.clone());
        outer.push("list", vec![Node::new(inner)]);
        let tree = Node::new(outer);
        assert_eq!(parse(tree.to_yaml().as_bytes(), Syntax::Yaml).unwrap(), tree, "{}", tree.to_yaml());
    }
}

fn any_tree() -> impl Strategy<Value = Node> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        "[\\n\\t :#a-c'\"|>-]{0,10}",
        "[0-9xobeE_.:+-]{1,8}",
        Just("yes".to_owned())
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Number(Number::Integer(n))),
        any::<f64>()
            .prop_filter("JSON", |n| n.is_finite() && n.fract() != 0.0)
            .prop_map(|n| Value::Number(Number::Float(n))),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_map(Node::new).prop_recursive(5, 40, 6, move |inner| {
        let mapping = prop::collection::vec((text.clone(), inner.clone()), 0..6).prop_map(|pairs| {
            let mut mapping = Mapping::default();
            for (key, node) in pairs {
                mapping.push(key, node.value);
            }
            Node::new(mapping)
        });
        prop_oneof![prop::collection::vec(inner, 0..6).prop_map(Node::new), mapping]
    })
}

/// Every span lies inside the text and on character boundaries.
fn check_spans(node: &Node, text: &str) -> Result<(), TestCaseError> {
    prop_assert!(text.get(node.span.start..node.span.end).is_some(), "{:?} in {:?}", node.span, text);
    match &node.value {
        Value::Sequence(items) => items.iter().try_for_each(|item| check_spans(item, text)),
        Value::Mapping(mapping) => mapping.entries().iter().try_for_each(|entry| {
            prop_assert!(text.get(entry.key_span.start..entry.key_span.end).is_some());
            check_spans(&entry.value, text)
        }),
        _ => Ok(()),
    }
}

proptest! {
    #[test]
    fn written_trees_parse_back_unchanged(tree in any_tree()) {
        for (text, syntax) in [
            (tree.to_yaml(), Syntax::Yaml), (tree.to_json(), Syntax::Json), (tree.to_json_pretty(), Syntax::Json),
            (tree.to_json(), Syntax::Yaml),
        ] {
            let back = parse(text.as_bytes(), syntax).map_err(|error| TestCaseError::fail(format!("{error}:\n{text}")))?;
            prop_assert_eq!(back.to_json(), tree.to_json(), "{}", text);
            check_spans(&back, &text)?;
        }
    }

    #[test]
    fn written_texts_read_back_unchanged(
        text in "\\PC{0,20}|.{0,20}|[ \\-#:,'\"|>&*!%@`\\[\\]{}?~.0-9a-z\n\t]{0,30}|(-----[A-Z]{1,4}-----\n|[a-z. -]{1,9}\n){0,4}",
    ) {
        let (quoted, inner) = (yaml_quoted(&text), yaml_text(&text, 4));
        let line_end = if inner.ends_with('\n') { "" } else { "\n" };
        for (document, syntax) in [
            (format!("{{\"a\": {quoted}, \"b\": [1]}}"), Syntax::Json),
            (format!("{{a: {quoted}, b: [1]}}"), Syntax::Yaml),
            (format!("a: {}\nb: [1]\n", yaml_text(&text, 0)), Syntax::Yaml),
            (format!("a: {inner}{line_end}b: [1]\n"), Syntax::Yaml),
        ] {
            let back = parse(document.as_bytes(), syntax)
                .map_err(|error| TestCaseError::fail(format!("{error}:\n{document}")))?;
            let expected = serde_json::json!({"a": text, "b": [1]});
            let back: serde_json::Value = serde_json::from_str(&back.to_json()).unwrap();
            prop_assert_eq!(back, expected, "{}", document);
        }
    }

    #[test]
    fn error_spans_lie_inside_the_text(text in "[\\[{\"a:ü\u{80}\u{1F600}\\\\u,\n -]{0,30}|\\PC{0,30}|.{0,30}") {
        let shown = source_text(text.as_bytes());
        for (syntax, shown) in [(Syntax::Yaml, shown.as_ref()), (Syntax::Json, text.as_str())] {
            if let Err(error) = parse(text.as_bytes(), syntax) {
                prop_assert!(shown.get(error.span.start..error.span.end).is_some(), "{:?} {:?}", error, text);
            }
        }
    }

    #[test]
    fn parsers_never_panic_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for syntax in [Syntax::Yaml, Syntax::JsonOrYaml, Syntax::Json] {
            let _ = parse(&bytes, syntax);
        }
        let _ = source_text(&bytes);
    }

    #[test]
    fn yaml_parser_never_panics_on_yaml_punctuation(text in "[ü\\[\\]{}:,&*!|>'\"%@#? \\t\\na1~<.-]{0,60}") {
        if let Ok(node) = parse(text.as_bytes(), Syntax::Yaml) {
            check_spans(&node, &source_text(text.as_bytes()))?;
            let back = parse(node.to_yaml().as_bytes(), Syntax::Yaml);
            prop_assert_eq!(back.map_err(|error| TestCaseError::fail(error.to_string()))?.to_json(), node.to_json());
        }
    }
}

fn yaml(text: &str) -> Result<Node, Diagnostic> {
    parse(text.as_bytes(), Syntax::Yaml)
}

/// Expected results are go-yaml's.
#[test]
fn continuation_lines_of_a_quoted_scalar_may_have_any_indentation() {
    let node = yaml("a:\n  b:\n    c: \"x\ny\n z\"\n    d: 'p\nq'\ne: 1\n").unwrap();
    let outer = node.as_mapping().unwrap().last("a").unwrap().value.as_mapping().unwrap();
    let inner = outer.last("b").unwrap().value.as_mapping().unwrap();
    assert_eq!(inner.last("c").unwrap().value.as_str(), Some("x y z"));
    let quoted = &inner.last("d").unwrap().value;
    assert_eq!((quoted.as_str(), quoted.span.line, quoted.span.column), (Some("p q"), 6, 8));
    let last = node.as_mapping().unwrap().last("e").unwrap();
    let text = "a:\n  b:\n    c: \"x\ny\n z\"\n    d: 'p\nq'\ne: 1\n";
    assert_eq!(text.get(last.value.span.start..last.value.span.end), Some("1"));
    assert_eq!((last.value.span.line, last.value.span.column), (8, 4));
    let wrong = yaml("a: \"x\ny\" z\n").unwrap_err();
    assert_eq!((wrong.span.line, wrong.span.column), (2, 4), "{wrong}");
    // Deeper than the indentation inserted at once.
    assert!(yaml(&format!("{}a: \"x\ny\"\n", "- ".repeat(100))).is_ok());
    // Tabs are white space here, and nowhere else.
    let tabs = yaml("a:\n  b: \"x\n\ty\"\n  c: 'x\n \t'\n").unwrap();
    let inner = tabs.as_mapping().unwrap().last("a").unwrap().value.as_mapping().unwrap();
    let values = ["b", "c"].map(|key| inner.last(key).unwrap().value.as_str());
    assert_eq!(values, [Some("x y"), Some("x ")]);
    assert!(yaml("a:\n\tb: x\n").is_err());
    // Rejects a text that needs too many repairs.
    assert!(yaml(&format!("a: \"{}\"\n", "x\n".repeat(1_000))).is_err());
}

#[test]
fn an_apostrophe_may_be_escaped_in_double_quotes() {
    let text = "a: \"it\\'s \\\\' \\'\"\nb: {c: \"\\'\", d: 1}\n";
    assert_eq!(json_of(text), r#"{"a":"it's \\' '","b":{"c":"'","d":1}}"#);
    let error = yaml("a: \"\\'\\q\"\n").unwrap_err();
    assert!(error.to_string().contains("escape"), "{error}");
}

#[test]
fn a_byte_order_mark_within_the_text_is_text() {
    let node = yaml("a: \u{feff}x\"\nb: [\u{feff}, 1]\n").unwrap();
    let entries = node.as_mapping().unwrap();
    assert_eq!(entries.last("a").unwrap().value.as_str(), Some("\u{feff}x\""));
    assert_eq!(entries.last("b").unwrap().value.as_sequence().unwrap()[0].as_str(), Some("\u{feff}"));
    // Also at the beginning of a line, where it is the first character of the key.
    let text = "a: 1\n\u{feff} b: 2\nc: 3\n";
    let node = yaml(text).unwrap();
    let entries = node.as_mapping().unwrap();
    assert_eq!(entries.last("\u{feff} b").unwrap().value.value, Value::from(2_i64));
    let last = &entries.last("c").unwrap().value;
    assert_eq!(text.get(last.span.start..last.span.end), Some("3"));
    assert!(yaml("- a:\n\u{feff}    b: 1\n  c: 2\n").is_err());
}

#[test]
fn comment_needs_no_space_after_a_closing_delimiter() {
    for text in ["a: 'x'#: y\nb: 1\n", "a: \"x\"#\nb: 1\n", "{a: 'x',#c\nb: 1}", "a: |-#c\n  x\nb: 1\n"] {
        let node = yaml(text).unwrap();
        let entries = node.as_mapping().unwrap();
        assert_eq!(entries.last("a").unwrap().value.as_str(), Some("x"), "{text:?}");
        let last = &entries.last("b").unwrap().value;
        assert_eq!(text.get(last.span.start..last.span.end), Some("1"), "{text:?}");
    }
    let node = yaml("a: x#y\n").unwrap();
    assert_eq!(node.as_mapping().unwrap().last("a").unwrap().value.as_str(), Some("x#y"));
}

#[test]
fn anchor_names_follow_yaml_1_1() {
    for text in ["a: &\"\nb: 1\n", "a: &x.y 1\n", "- &ü [1]\n", "&a/b {a: 1}\n"] {
        let error = yaml(text).unwrap_err();
        assert!(text.get(error.span.start..error.span.end).unwrap().starts_with('&'), "{error:?}");
    }
    for text in ["a: &x-y_1 1\nb: *x-y_1\n", "a: '&x.y'\n", "a: &x 1\n---\nb: &x.y 1\n"] {
        assert!(yaml(text).is_ok(), "{text:?}");
    }
}

#[test]
fn tag_needs_white_space_after_it_and_line_no_tab_before_its_first_token() {
    for text in [
        "{a: !5}",
        "[!!str]",
        "a: !!str#x\n  y\n",
        "a:\n  - b:\n     \tc: 1\n",
        "a:\n \t'b'\n",
        "a:\n \t- 1\n",
        "-\t1\n",
        "- \ta: 1\n",
        "- -\t[1]\n",
        "?\ta\n: 1\n",
        "a: \"b\"\n  \t# c\n",
        "a:\n\t\nb: 1\n",
        "a: [1]\n\t\nb: 1\n",
        "- 'a'\n \t\n- b\n",
    ] {
        assert!(yaml(text).is_err(), "{text:?}");
    }
    for text in [
        "{a: !!str 5}",
        "a: !!str\n",
        "a: !!str 5 # c\n",
        "a:\t1\n",
        "{\n \ta: 1}",
        "a: 'b\n \tc'\n",
        "a: &b-\t1\n",
        "a: 'b'\t# c\n",
        "a: {\n\t\n b: '1'\n\t# c\n}\n",
        "a: b\n  \t# c\n",
        "a: |\n  b\n  \t\n",
        "a: \"b\n  \tc\"\n",
        "[?\ta]",
    ] {
        assert!(yaml(text).is_ok(), "{text:?}");
    }
}

#[test]
fn rejects_plain_scalar_beginning_with_colon_in_flow_collection() {
    for text in ["{\"a\"::b\"}", "{a: :b}", "{:a}", "{a: ::b, c: 1}", "[a, :b]"] {
        assert!(yaml(text).is_err(), "{text:?}");
    }
    for text in ["{a::b}", "{a: b:c}", "{a: ':b'}", "{a: , b: }", "a: :b"] {
        assert!(yaml(text).is_ok(), "{text:?}");
    }
}

#[test]
fn rejects_escapes_and_keys_of_yaml_1_2_only() {
    for text in
        ["a: \"\\/\"", "a: \"\\ud83d\\ude00\"", "{\"a\nb\": 1}", "{\"a\"\n: 1}", "{a\n: 1}", "[\"a\"\n: 1]"]
    {
        assert!(yaml(text).is_err(), "{text:?}");
    }
    for text in
        ["a: \"\\\\/\"", "a: '\\/'", "{? \"a\nb\"\n: 1}", "{\"a\":\n1}", "{\"a\"\n}", "[\"a\n b\", c]"]
    {
        assert!(yaml(text).is_ok(), "{text:?}");
    }
    // JSON allows them.
    let json = parse(b"{\"a\": \"\\/\\ud83d\\ude00\"}", Syntax::JsonOrYaml).unwrap();
    assert_eq!(json.as_mapping().unwrap().last("a").unwrap().value.as_str(), Some("/\u{1f600}"));
}

/// Whether go-yaml accepts each text.
#[test]
fn tabs_before_empty_lines_and_comments_are_accepted_where_go_yaml_accepts_them() {
    for (text, is_accepted) in [
        ("a:\n- \t#x\n  b: c\n", false),
        ("a:\n-\t#x\n", false),
        ("a:\n- \t\n  b: c\n", false),
        ("a:\n  ? \t#x\n    b\n  : c\n", false),
        ("a:\n  b: \t#x\n    c: d\n", true),
        ("a: b\n\t\nc: d\n", false),
        ("a: b\n\t#x\nc: d\n", false),
        ("a: b\n \t#x\nc: d\n", true),
        ("a: b\n\t", false),
        ("x:\n  a: b\n  \t#x\n  c: d\n", false),
        ("x:\n  a: b\n   \t#x\n  c: d\n", true),
        ("x:\n    a: b\n  \t#x\n    c: d\n", false),
        ("a:\n- b\n\t#x\n- c\n", false),
        ("a:\n- b\n \t#x\n- c\n", true),
        ("a:\n  - b\n  \t#x\n  - c\n", false),
        ("a: \"b\"\n\t#x\nc: d\n", false),
        ("a: |\n  b\n\t#x\nc: d\n", false),
        ("x: {a: b\n\t#x\n, c: d}\n", false),
        ("x: [b\n\t]\n", false),
    ] {
        assert_eq!(yaml(text).is_ok(), is_accepted, "{text:?}: {:?}", yaml(text).err());
    }
}
