//! Any text as the URL of an endpoint: a parsed URL has a plain host, and its written form parses to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_registries::http::{HttpUrl, UrlScheme};

fuzz_target!(|text: &str| {
    for text in [text, &format!("https://{text}"), &format!("http://[{text}")] {
        let Ok(url) = HttpUrl::parse(text) else { continue };
        assert!(url.target.starts_with('/') && url.target.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(url.port != 0 && !url.host.is_empty());
        assert!(!url.host.contains(['@', '/', '?', '#', '[', ']', '\\', '%']));
        let scheme = if url.scheme == UrlScheme::Https { "https" } else { "http" };
        let written = format!("{scheme}://{}{}", url.authority(), url.target);
        assert_eq!(HttpUrl::parse(&written).as_ref(), Ok(&url), "{written}");
        assert!(!url.to_string().contains('?'), "the query is shown");
        assert!(HttpUrl::parse(&url.join("/x").to_string()).is_ok());
    }
});
