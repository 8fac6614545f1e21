//! Any bytes as a kubeconfig: never panics, spans lie inside the text, and a loaded file round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_types::kubeconfig;
use navicert_types::tree::{Syntax, parse, source_text};

fuzz_target!(|bytes: &[u8]| {
    match kubeconfig::decode(bytes) {
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            let text = source_text(bytes);
            for diagnostic in &diagnostics {
                let _ = (diagnostic.to_string(), format!("{diagnostic:?}"));
                if std::str::from_utf8(bytes).is_ok() {
                    assert!(text.get(diagnostic.span.start..diagnostic.span.end).is_some(), "{diagnostic:?}");
                }
            }
        }
        Ok(config) => {
            let _ = (
                format!("{config:?}"),
                config.redacted_tree().to_yaml(),
                config.expose_tree().to_json_pretty(),
            );
            let written = config.expose_tree_with_unknown_fields();
            let yaml = written.to_yaml();
            let back = kubeconfig::decode(yaml.as_bytes()).expect("encoded kubeconfig loads");
            assert!(back.expose_tree_with_unknown_fields() == written, "{yaml}");
            // Parsed as JSON, since YAML rejects flow mapping keys of more than 1024 characters.
            let json = parse(written.to_json().as_bytes(), Syntax::Json).expect("encoded kubeconfig parses");
            assert!(json == written, "{}", written.to_json());
        }
    }
});
