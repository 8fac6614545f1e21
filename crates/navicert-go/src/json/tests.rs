use proptest::prelude::*;

use super::*;

#[test]
fn rejects_what_go_rejects() {
    for bad in [
        "",
        " ",
        "{",
        "}",
        "{]",
        "[}",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "tru",
        "truex",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\u{1}\"",
        "1 2",
        "{} x",
        "\u{feff}{}",
        "-",
        "[1 2]",
    ] {
        assert!(Raw::parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
    for good in
        ["{}", " [ ] ", "[[],{}]", "-0.5e+10", "\"\\u00e9\\/\"", "{\"a\":{\"b\":[1,{\"c\":null}]}}", "0"]
    {
        assert!(Raw::parse(good.as_bytes()).is_ok(), "{good:?}");
    }
}

// S103
#[test]
fn nesting_limit_matches_go() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(Raw::parse_object(nested(10_000).as_bytes(), &mut Vec::new()).unwrap().1, 10_000);
    assert_eq!(Raw::parse(nested(10_001).as_bytes()), Err(JsonError::TooDeep));
}

// More containers than a word has bits, of both kinds, each closed by its own bracket.
#[test]
fn deep_containers_are_distinguished() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 500] {
        let mark = |at: usize| at.is_multiple_of(3);
        let open: String = (0..depth).map(|at| if mark(at) { "[" } else { "{\"a\":" }).collect();
        let close: String = (0..depth).rev().map(|at| if mark(at) { ']' } else { '}' }).collect();
        let text = format!("[{open}1{close},{open}2{close}]");
        assert!(Raw::parse(text.as_bytes()).is_ok(), "{depth}");
        for at in 0..depth {
            let wrong: String = close
                .chars()
                .enumerate()
                .map(
                    |(index, bracket)| {
                        if index == at { if bracket == ']' { '}' } else { ']' } } else { bracket }
                    },
                )
                .collect();
            assert!(Raw::parse(format!("{open}1{wrong}").as_bytes()).is_err(), "{depth}, {at}");
        }
    }
}

// Every position in eight bytes, and the bytes next to those that end a run.
#[test]
fn runs_of_plain_bytes_end_at_the_right_byte() {
    for length in 0..40 {
        for special in 0..=u8::MAX {
            for at in 0..length {
                let mut text = vec![b'a'; length];
                text[at] = special;
                let ends = matches!(special, b'"' | b'\\' | 0..0x20);
                assert_eq!(
                    length - after_plain(&text).len(),
                    if ends { at } else { length },
                    "{special} at {at} of {length}"
                );
                if let Some(last) = text.last_mut() {
                    *last = b'"';
                }
                assert_eq!(length - after_plain(&text).len(), if ends { at } else { length - 1 });
            }
        }
    }
}

#[test]
fn members_keep_order_and_duplicates() {
    let text = br#" { "a" : [1, {"x": "]"}] , "b\u0041":null,"a":"\"," } "#;
    let members: Vec<(String, String)> = Raw::parse(text)
        .unwrap()
        .members()
        .map(|(name, value)| (name.into_owned(), value.text().into_owned()))
        .collect();
    let expected = [("a", r#"[1, {"x": "]"}]"#), ("bA", "null"), ("a", r#""\",""#)];
    assert_eq!(members, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

// S133
#[test]
fn invalid_text_is_replaced_byte_by_byte() {
    let string = |text: &[u8]| Raw::parse(text).unwrap().string().unwrap().into_owned();
    assert_eq!(string(b"\"\xe2\x82\""), "\u{fffd}\u{fffd}");
    assert_eq!(string(br#""\ud800x""#), "\u{fffd}x");
    assert_eq!(string(br#""\ud83d\ude00""#), "\u{1f600}");
    assert_eq!(string(br#""\ud800\u0041""#), "\u{fffd}A");
    assert!(Raw::parse(br#"{"a":["\udc00"]}"#).unwrap().has_replacements());
    assert!(Raw::parse(b"{\"\xff\":1}").unwrap().has_replacements());
    assert!(!Raw::parse("{\"a\":\"\u{fffd}\"}".as_bytes()).unwrap().has_replacements());
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(raw) = Raw::parse(&bytes) {
            raw.members().count();
            raw.elements().count();
            raw.string();
            raw.has_replacements();
        }
    }

    #[test]
    fn what_serde_writes_is_read_alike(words in proptest::collection::vec(("\\PC*", "\\PC*", any::<f64>()), 0..5)) {
        let expected: Vec<serde_json::Value> =
            words.iter().map(|(name, text, number)| serde_json::json!({name.as_str(): [text, number]})).collect();
        let text = serde_json::to_vec(&expected).unwrap();
        let raw = Raw::parse(&text).unwrap();
        prop_assert_eq!(raw.elements().count(), expected.len());
        for (element, (name, text, _)) in raw.elements().zip(&words) {
            let (found, values) = element.members().next().unwrap();
            prop_assert_eq!(found.as_ref(), name);
            let first = values.elements().next().unwrap().string().unwrap();
            prop_assert_eq!(first.as_ref(), text);
        }
    }
}

#[test]
fn members_collected_during_validation_match() {
    for text in [
        "{}",
        " { } ",
        "[1, {\"a\": 2}]",
        "7",
        r#"{"a":1}"#,
        r#" { "a" : 1 , "b" : [ ] , "c" : { } , "d" : { "e" : [ { "f" : "}" } ] } , "a" : "x\"," } "#,
        r#"{"a":{"b":{"c":[1,2,{"d":null}]}},"\u0061":true,"z":"\\"}"#,
    ] {
        let mut found = Vec::new();
        let (raw, _) = Raw::parse_object(text.as_bytes(), &mut found).unwrap();
        assert_eq!(found, raw.members().collect::<Vec<_>>(), "{text}");
    }
}

/// Valid documents, and nearly valid ones.
fn documents() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 30] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"a\"",
        b"\"a\":",
        b"\"seven b",
        b"yte\\u0041s\"",
        b"\"",
        b"\\",
        b"\"\xc3\xa9\"",
        b"\"\xff\"",
        b"\"\\ud83d\\ude00\\n\"",
        b"\"without any escape, and long\"",
        b"\"b\":[",
        b"\"c\":{",
        b"1",
        b"-0",
        b".5",
        b"e-3",
        b"1234567890",
        b"true",
        b"false",
        b"null",
        b"nul",
        b" ",
        b"\n\t",
        b"\x01",
    ];
    let piece = proptest::sample::select(pieces.to_vec());
    let some = proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    let members = proptest::collection::vec((some.clone(), some.clone()), 0..4);
    let whole = members.prop_map(|members| {
        let member = |(name, value): &(Vec<u8>, Vec<u8>)| [b"\"k", &name[..], b"\" :", value].concat();
        let members: Vec<Vec<u8>> = members.iter().map(member).collect();
        [b" { ", &members.join(&b", "[..])[..], b"}"].concat()
    });
    prop_oneof![some, whole]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // The other scanner provides the error messages.
    #[test]
    fn whatever_the_text_both_scanners_agree_and_so_do_both_ways_to_its_members(text in documents()) {
        let mut found = Vec::new();
        let parsed = Raw::parse_object(&text, &mut found);
        prop_assert_eq!(parsed.is_ok(), syntax_error(&text).is_none());
        prop_assert_eq!(parsed.is_ok(), Raw::parse(&text).is_ok());
        if let Ok((raw, _)) = parsed {
            prop_assert_eq!(&found, &raw.members().collect::<Vec<_>>());
            for (_, value) in found {
                prop_assert_eq!(value.string(), Raw::Any(value.bytes()).string());
                prop_assert_eq!(value.number(), Raw::Any(value.bytes()).number());
                let inside: Vec<_> = value.elements().collect();
                prop_assert_eq!(&inside, &Raw::Any(value.bytes()).elements().collect::<Vec<_>>());
                prop_assert_eq!(value.members().count(), Raw::Any(value.bytes()).members().count());
            }
        }
    }
}
