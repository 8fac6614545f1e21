//! Decodes like Go's strict and lenient JSON decoders, but reports every error.

use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use indexmap::IndexMap;
use proptest::prelude::*;

use super::*;
use crate::secret::Secret;
use crate::tree::{Syntax, parse};

#[derive(Debug, Default, PartialEq)]
struct Plugin {
    name: String,
    token: Secret<String>,
    key: Secret<Vec<u8>>,
    retries: u8,
    verbose: bool,
    args: Vec<String>,
    labels: IndexMap<String, String>,
    anything: Node,
    inner: Option<Box<Plugin>>,
}

impl Decode for Plugin {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Plugin {
            name: fields.required("name"),
            token: fields.default("token"),
            key: fields.default("key"),
            retries: fields.default("retries"),
            verbose: fields.default("verbose"),
            args: fields.default("args"),
            labels: fields.default("labels"),
            anything: fields.default("anything"),
            inner: fields.optional("inner"),
        })
    }
}

fn read(yaml: &str, mode: DecodeMode) -> Result<Plugin, Diagnostics> {
    decode(&parse(yaml.as_bytes(), Syntax::Yaml).unwrap(), mode)
}

fn errors(yaml: &str, mode: DecodeMode) -> Vec<String> {
    read(yaml, mode).map_or_else(|errors| errors.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

#[test]
fn reports_every_error_in_the_order_of_the_text() {
    let yaml = "\
inner:
  name: x
  foo: 1
  args: [a, 2, true]
  name: z
retries: 300
verbose: 'true'
labels: {a: b, a: c, d: 1}
nmae: z
anything: {x: [{x: 1, x: 2}]}
args: text
";
    let expected = [
        "name: missing required field (line 1, column 1)",
        "inner.foo: unknown field (line 3, column 3)",
        "inner.args[1]: expected a string, found a number (line 4, column 13); put the value in quotes",
        "inner.args[2]: expected a string, found a boolean (line 4, column 16); put the value in quotes",
        "inner.name: duplicate field, first on line 2 (line 5, column 3)",
        "retries: expected an integer between 0 and 255 (line 6, column 10)",
        "verbose: expected a boolean, found a string (line 7, column 10)",
        "labels[a]: duplicate field, first on line 8 (line 8, column 16)",
        "labels[d]: expected a string, found a number (line 8, column 25); put the value in quotes",
        "nmae: unknown field (line 9, column 1); did you mean `name`?",
        "anything.x: duplicate field, first on line 10 (line 10, column 23)",
        "args: expected a list, found a string (line 11, column 7)",
    ];
    assert_eq!(errors(yaml, DecodeMode::Strict), expected);
}

#[test]
fn lenient_mode_ignores_unknown_and_duplicate_fields_but_checks_types() {
    let plugin = read("name: a\nNAME: b\nfoo: 1\nname: c\nretries: 1.0\n", DecodeMode::Lenient).unwrap();
    assert_eq!((plugin.name.as_str(), plugin.retries), ("c", 1));
    assert_eq!(errors("name: 5\nfoo: 1\n", DecodeMode::Lenient).len(), 1);
}

#[test]
fn null_is_the_zero_value_everywhere() {
    let plugin =
        read("name: x\ntoken: null\nargs: [null]\nlabels: {a: ~}\ninner:\nverbose: ~\n", DecodeMode::Strict)
            .unwrap();
    assert_eq!(plugin.args, [""]);
    assert_eq!(plugin.labels.get("a").map(String::as_str), Some(""));
    assert_eq!((plugin.inner, plugin.token.is_empty()), (None, true));
    assert!(decode::<Plugin>(&Node::default(), DecodeMode::Lenient).is_ok());
}

#[test]
fn document_of_another_type_is_one_error() {
    assert_eq!(errors("- a\n", DecodeMode::Strict), ["line 1, column 1: expected a mapping, found a list"]);
    assert_eq!(
        errors("name: x\ninner: [1]\n", DecodeMode::Strict),
        ["inner: expected a mapping, found a list (line 2, column 8)"]
    );
}

// C106
#[test]
fn base64_decodes_as_in_go() {
    let key = |value: &str| {
        read(&format!("name: x\nkey: {value}\n"), DecodeMode::Lenient)
            .map(|plugin| plugin.key.expose().clone())
    };
    for (value, bytes) in [
        ("AQID", vec![1, 2, 3]),
        ("\"AQ\\r\\nID\"", vec![1, 2, 3]),
        ("|\n  AQ\n  ID\n", vec![1, 2, 3]),
        ("''", vec![]),
        ("null", vec![]),
        ("[1, 2, 255, null]", vec![1, 2, 255, 0]),
        ("[]", vec![]),
        ("QR==", vec![b'A']),
    ] {
        assert_eq!(key(value).unwrap(), bytes, "{value}");
    }
    for value in ["AQI", "AQ ID", "-_-_", "AQ*D", "5", "[256]", "['1']", "-----BEGIN", "AQID=", "\"AQ\\tID\""]
    {
        let errors = key(value).unwrap_err();
        assert!(
            errors.iter().all(|error| error.is_secret && error.path.to_string().starts_with("key")),
            "{value}"
        );
    }
}

#[test]
fn errors_in_secrets_are_marked_and_omit_the_value() {
    let errors = read("name: x\ntoken: 31337\nkey: s3cret!\n", DecodeMode::Strict).unwrap_err();
    assert_eq!(errors.len(), 2);
    for error in &errors {
        assert!(error.is_secret, "{error}");
        assert!(
            !format!("{error} {error:?}").contains("31337")
                && !format!("{error} {error:?}").contains("s3cret")
        );
    }
    let errors = read("name: 31337\n", DecodeMode::Strict).unwrap_err();
    assert!(!errors.iter().any(|error| error.is_secret));
}

#[test]
fn unknown_fields_can_be_kept_in_their_order() {
    #[derive(Debug, Default)]
    struct Open(String, Mapping);
    impl Decode for Open {
        fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
            decoder.object(node, |fields| Open(fields.default("b"), fields.rest()))
        }
    }
    let node = parse(b"c: 1\nb: x\na: {d: e}\n", Syntax::Yaml).unwrap();
    for mode in [DecodeMode::Strict, DecodeMode::Lenient] {
        let Open(b, rest) = decode(&node, mode).unwrap();
        assert_eq!((b.as_str(), Node::new(rest).to_json().as_str()), ("x", r#"{"c":1,"a":{"d":"e"}}"#));
    }
}

#[test]
fn error_for_unknown_word_lists_the_allowed_words() {
    let mut decoder = Decoder::new(DecodeMode::Strict);
    let words = [("on", true), ("off", false)];
    assert_eq!(decoder.one_of(&Node::new("off"), &words), Some(false));
    assert_eq!(decoder.one_of(&Node::new("of"), &words), None);
    let errors = decoder.finish(()).unwrap_err();
    assert_eq!(errors.to_string(), "line 1, column 1: expected one of `on`, `off`");
}

#[test]
fn number_of_reported_errors_is_limited() {
    let yaml: String = (0..5_000).map(|n| format!("unknown{n}: 1\nunknown{n}: 2\n")).collect();
    assert_eq!(errors(&yaml, DecodeMode::Strict).len(), MAX_DIAGNOSTICS);
}

#[test]
fn json_numbers_are_not_converted() {
    let json = |text: &str| {
        decode::<IndexMap<String, i32>>(&parse(text.as_bytes(), Syntax::Json).unwrap(), DecodeMode::Strict)
    };
    assert_eq!(json(r#"{"a":7}"#).unwrap().get("a"), Some(&7));
    for text in [r#"{"a":1.0}"#, r#"{"a":1e3}"#, r#"{"a":2147483648}"#, r#"{"a":1e400}"#, r#"{"a":"7"}"#] {
        assert!(json(text).is_err(), "{text}");
    }
    assert!(decode::<f64>(&parse(b"1e400", Syntax::Json).unwrap(), DecodeMode::Strict).is_err());
}

proptest! {
    /// The fast decoder and the one that has Go's rules must not differ in anything but speed.
    #[test]
    fn fast_base64_is_the_same_base64(text in "[A-D+/_-]{0,90}={0,3}", at in 0_usize..90, other in "[=\\r\\n ü*]?") {
        let (before, after) = text.split_at(at.min(text.len()));
        let text = format!("{before}{other}{after}");
        let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
        let rules = GeneralPurpose::new(&alphabet::STANDARD, config);
        let expected = rules.decode(text.replace(['\r', '\n'], "")).ok();
        let mut decoder = Decoder::new(DecodeMode::Lenient);
        let decoded = Base64::decode(&Node::new(text.as_str()), &mut decoder).map(|bytes| bytes.0);
        prop_assert_eq!(decoded, expected);
    }
}
