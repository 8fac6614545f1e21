//! Any bytes as a versioned document with every kind of field, strict and lenient, in every language.

#![no_main]

use indexmap::IndexMap;
use libfuzzer_sys::fuzz_target;
use navicert_types::Secret;
use navicert_types::decode::{Base64, Decode, DecodeMode, Decoder};
use navicert_types::time::{Duration, Time};
use navicert_types::tree::{Node, Syntax};
use navicert_types::versioned::{Kind, Versions};

#[derive(Debug, Default)]
struct Everything {
    _text: String,
    _secret: Secret<String>,
    _key: Secret<Vec<u8>>,
    _data: Base64,
    _flag: bool,
    _count: i32,
    _size: u64,
    _ratio: f64,
    _time: Option<Time>,
    _duration: Option<Duration>,
    _list: Vec<String>,
    _map: IndexMap<String, Vec<String>>,
    _any: Node,
    _inner: Option<Box<Everything>>,
    _inners: Vec<Everything>,
}

impl Decode for Everything {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Everything {
            _text: fields.required("t"),
            _secret: fields.default("s"),
            _key: fields.default("k"),
            _data: fields.default("d"),
            _flag: fields.default("f"),
            _count: fields.default("c"),
            _size: fields.default("z"),
            _ratio: fields.default("r"),
            _time: fields.optional("time"),
            _duration: fields.optional("duration"),
            _list: fields.default("l"),
            _map: fields.default("m"),
            _any: fields.default("a"),
            _inner: fields.optional("i"),
            _inners: fields.default("is"),
        })
    }
}

fuzz_target!(|bytes: &[u8]| {
    for mode in [DecodeMode::Strict, DecodeMode::Lenient, DecodeMode::LenientJson] {
        for syntax in [Syntax::Yaml, Syntax::JsonOrYaml, Syntax::Json] {
            // Without defaults few inputs would get past the version.
            let versions: Versions<Everything> = Versions {
                syntax,
                mode,
                default_api_version: Some("v1"),
                default_kind: Some("E"),
                kinds: &[Kind { api_version: "v1", kind: "E", decode: Everything::decode }],
            };
            if let Err(diagnostics) = versions.decode(bytes) {
                let starts: Vec<usize> = diagnostics.iter().map(|diagnostic| diagnostic.span.start).collect();
                assert!(!starts.is_empty() && starts.is_sorted());
                assert!(diagnostics.iter().all(|diagnostic| diagnostic.span.end <= bytes.len() * 2));
                let _ = (diagnostics.to_string(), format!("{diagnostics:?}"));
            }
        }
    }
});
