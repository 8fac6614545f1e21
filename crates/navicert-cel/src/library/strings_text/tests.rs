//! The strings extension compared with cel-go (string_ext of the conformance suite and edge cases).

use super::*;
use proptest::prelude::*;

use PositionError::{OutOfRange, Reversed};

#[test]
fn positions_count_code_points_including_the_end() {
    // string_ext/char_at, string_ext/substring
    assert_eq!(char_at("tacocat", 3), Ok("o"));
    assert_eq!(char_at("tacocat", 7), Ok(""));
    assert_eq!(char_at("abcé😀", 4), Ok("😀"));
    assert_eq!(char_at("tacocat", 8), Err(OutOfRange(8)));
    assert_eq!(char_at("tacocat", -1), Err(OutOfRange(-1)));
    assert_eq!(substring_from("tacocat", 4), Ok("cat"));
    assert_eq!(substring_from("tacocat", 7), Ok(""));
    assert_eq!(substring_from("tacocat", 8), Err(OutOfRange(8)));
    assert_eq!(substring_from("é", 2), Err(OutOfRange(2)));
    for (start, end, part) in [
        (0, 4, Ok("taco")),
        (4, 4, Ok("")),
        (4, 8, Err(OutOfRange(8))),
        (5, 3, Err(Reversed { start: 5, end: 3 })),
        (-1, 3, Err(OutOfRange(-1))),
        (8, 9, Err(OutOfRange(8))),
        (0, -1, Err(Reversed { start: 0, end: -1 })),
        (i64::MIN, i64::MAX, Err(OutOfRange(i64::MIN))),
    ] {
        assert_eq!(substring("tacocat", start, end), part);
    }
    assert_eq!(substring("é😀b", 1, 2), Ok("😀"));
}

#[test]
fn index_of_and_last_index_of_match_cel_go() {
    // string_ext/index_of, string_ext/last_index_of
    for (text, needle, first, last) in [
        ("tacocat", "", 0, 7),
        ("tacocat", "ac", 1, 1),
        ("tacocat", "a", 1, 5),
        ("tacocat", "none", -1, -1),
        ("é😀b", "b", 2, 2),
        ("", "", 0, 0),
        ("", "a", -1, -1),
        ("ab", "abc", -1, -1),
    ] {
        assert_eq!((index_of(text, needle), last_index_of(text, needle)), (first, last), "{text} {needle}");
    }
    for (text, needle, offset, position) in [
        ("tacocat", "a", 3, Ok(5)),
        ("tacocat", "a", 7, Ok(-1)),
        ("tacocat", "", 7, Ok(7)),
        ("tacocat", "", 8, Ok(7)),
        ("tacocat", "a", 30, Ok(-1)),
        ("tacocat", "a", -1, Err(OutOfRange(-1))),
        ("tacocat", "cat", 4, Ok(4)),
        ("tacocat", "cat", 5, Ok(-1)),
        ("é😀b", "", 9, Ok(3)),
        ("", "", 5, Ok(0)),
    ] {
        assert_eq!(index_of_from(text, needle, offset), position, "{text} {needle} {offset}");
    }
    for (text, needle, offset, position) in [
        ("tacocat", "", 3, Ok(3)),
        ("tacocat", "a", 3, Ok(1)),
        ("tacocat", "c", 2, Ok(2)),
        ("tacocat", "taco", 0, Ok(0)),
        ("tacocat", "a", 6, Ok(5)),
        ("tacocat", "t", 6, Ok(6)),
        ("tacocat", "a", 7, Ok(-1)),
        ("tacocat", "", 7, Ok(7)),
        ("tacocat", "", 80, Ok(7)),
        ("tacocat", "a", 30, Ok(-1)),
        ("tacocat", "a", -1, Err(OutOfRange(-1))),
        ("tacocatt", "tt", 7, Ok(6)),
        ("tacocat", "tacocats", 6, Ok(-1)),
        ("é😀b", "😀", 1, Ok(1)),
        ("é😀b", "b", 1, Ok(-1)),
        ("aéé", "a", 1, Ok(0)),
        ("", "", 1, Ok(0)),
        ("", "", 0, Ok(0)),
    ] {
        assert_eq!(last_index_of_from(text, needle, offset), position, "{text} {needle} {offset}");
    }
}

#[test]
fn split_stops_at_the_limit() {
    // string_ext/split
    for (text, separator, limit, parts) in [
        ("hello world", " ", -1, &["hello", "world"][..]),
        ("hello world events!", " ", 0, &[]),
        ("hello world events!", " ", 1, &["hello world events!"]),
        ("hello world events!", " ", 2, &["hello", "world events!"]),
        ("hello world events!", " ", -7, &["hello", "world", "events!"]),
        ("aé😀", "", -1, &["a", "é", "😀"]),
        ("aé😀", "", 2, &["a", "é😀"]),
        ("aé😀", "", 0, &[]),
        ("aé😀", "", 1, &["aé😀"]),
        ("aé😀", "", 9, &["a", "é", "😀"]),
        ("", "", -1, &[]),
        ("", "", 1, &[]),
        ("", ",", -1, &[""]),
        ("a,,b,", ",", -1, &["a", "", "b", ""]),
    ] {
        assert_eq!(
            split(text, separator, limit).collect::<Vec<_>>(),
            parts,
            "{text:?} {separator:?} {limit}"
        );
    }
}

#[test]
fn replaced_length_equals_the_written_length() {
    // string_ext/replace
    for (text, old, new, limit, result) in [
        ("12 days 12 hours", "{0}", "2", -1, "12 days 12 hours"),
        ("{0} days {0} hours", "{0}", "2", -1, "2 days 2 hours"),
        ("{0} days {0} hours", "{0}", "2", 1, "2 days {0} hours"),
        ("{0} days {0} hours", "{0}", "2", 0, "{0} days {0} hours"),
        ("{0} days {0} hours", "{0}", "2", -5, "2 days 2 hours"),
        ("abé", "", "-", -1, "-a-b-é-"),
        ("abé", "", "-", 2, "-a-bé"),
        ("abé", "", "-", 3, "-a-b-é"),
        ("abé", "", "-", 4, "-a-b-é-"),
        ("", "", "-", -1, "-"),
        ("a", "a", "aa", -1, "aa"),
        ("aaa", "aa", "b", -1, "ba"),
    ] {
        let mut out = String::new();
        write_replaced(&mut out, text, old, new, limit).unwrap();
        assert_eq!(out, result);
        assert_eq!(replaced_len(text, old, new, limit), result.len());
    }
    let (long, longer) = ("x".repeat(1 << 16), "y".repeat(1 << 20));
    assert_eq!(replaced_len(&long, "", &longer, -1), ((1 << 16) + 1) * (1 << 20) + (1 << 16));
}

#[test]
fn case_trim_reverse_and_join_match_cel_go() {
    let written = |write: fn(&mut String, &str) -> fmt::Result, text: &str| {
        let mut out = String::new();
        write(&mut out, text).unwrap();
        out
    };
    assert_eq!(written(write_lower_ascii, "TacoCÆt Xii"), "tacocÆt xii");
    assert_eq!(written(write_upper_ascii, "tacoCÆt Xié"), "TACOCÆT XIé");
    assert_eq!(written(write_reversed, "aé😀"), "😀éa");
    assert_eq!(
        trim(
            " \x0c\n\r\t\x0btext\u{85}\u{a0}\u{1680}\u{2000}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}"
        ),
        "text"
    );
    let kept = "\u{180e}text\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}";
    assert_eq!(trim(kept), kept);
    assert_eq!(trim("\x1ctext\x1f"), "\x1ctext\x1f");
}

proptest! {
    #[test]
    fn replace_agrees_with_the_standard_library(text in "[abé]{0,12}", old in "[abé]{0,2}", new in "[xyé]{0,3}", limit in 0_usize..6) {
        let mut out = String::new();
        write_replaced(&mut out, &text, &old, &new, i64::try_from(limit).unwrap()).unwrap();
        prop_assert_eq!(&out, &text.replacen(&old, &new, limit));
        prop_assert_eq!(replaced_len(&text, &old, &new, i64::try_from(limit).unwrap()), out.len());
    }

    #[test]
    fn joining_the_split_parts_gives_the_text(text in "[ab,é]{0,12}", separator in "[,a]{0,2}", limit in 1_i64..6) {
        let parts: Vec<_> = split(&text, &separator, limit).collect();
        prop_assert_eq!(parts.join(&separator), text.as_str());
        prop_assert!(parts.len() <= usize::try_from(limit).unwrap());
    }

    #[test]
    fn found_position_holds_the_needle(text in "[abé😀]{0,10}", needle in "[abé]{1,2}", offset in 0_i64..12) {
        let forward = index_of_from(&text, &needle, offset).unwrap();
        if forward >= 0 {
            prop_assert!(forward >= offset);
            prop_assert!(substring_from(&text, forward).unwrap().starts_with(&needle));
        }
        let back = last_index_of_from(&text, &needle, offset).unwrap();
        if back >= 0 {
            prop_assert!(back <= offset);
            prop_assert!(substring_from(&text, back).unwrap().starts_with(&needle));
        }
    }
}

// At small and large distances, after single-byte and multi-byte characters.
#[test]
fn finds_single_byte_separator_at_every_position() {
    for distance in 0..40 {
        for count in 0..4 {
            let text = vec!["é".repeat(distance / 2) + &"a".repeat(distance % 2); count + 1].join(",");
            let expected: Vec<&str> = text.split(',').collect();
            assert_eq!(split(&text, ",", -1).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
