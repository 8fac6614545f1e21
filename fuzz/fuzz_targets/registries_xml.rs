//! Responses of STS as XML: reads the text of an element whatever surrounds it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_registries::fuzzing::xml_text_at;

fuzz_target!(|text: &str| {
    let _ = xml_text_at(text, &["A", "B"]);
    // Escaped text is read back.
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let document = format!("<?xml version=\"1.0\"?><A><C>{escaped}</C><B>{escaped}</B></A>");
    assert_eq!(xml_text_at(&document, &["A", "B"]).as_deref(), Some(text));
    // What stands in another element does not count.
    let document = format!("<A><C>{text}</C></A>");
    if !text.contains('<') {
        assert_eq!(xml_text_at(&document, &["A", "B"]), None);
    }
});
