//! Any text as the URL of an endpoint: a parsed URL has a plain host, and its written form parses to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_registries::fuzzing::endpoint_url;

fuzz_target!(|text: &str| {
    for text in [text, &format!("https://{text}"), &format!("http://[{text}")] {
        let Some(url) = endpoint_url(text) else { continue };
        assert!(url.target.starts_with('/') && url.target.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(url.port != 0 && !url.host.is_empty());
        assert!(!url.host.contains(['@', '/', '?', '#', '[', ']', '\\', '%']));
        assert_eq!(endpoint_url(&url.written).as_ref(), Some(&url));
        assert!(!url.shown.contains('?'), "the query is shown");
        assert!(endpoint_url(&url.joined).is_some());
    }
});
