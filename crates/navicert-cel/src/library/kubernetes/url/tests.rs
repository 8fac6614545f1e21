//! URLs as parsed by Kubernetes 1.37 with Go's `net/url`.

use super::{Url, UrlFault};
use proptest::prelude::*;

/// Input, then display form, scheme, host, hostname, port, escaped path.
#[rustfmt::skip]
const GOOD: &[(&str, [&str; 6])] = &[
    ("https://user@host.example:8443/p/a?q=1&q=2&r=#frag", ["https://user@host.example:8443/p/a?q=1&q=2&r=#frag", "https", "host.example:8443", "host.example", "8443", "/p/a"]),
    ("https://a.com", ["https://a.com", "https", "a.com", "a.com", "", ""]),
    ("https://a.com/", ["https://a.com/", "https", "a.com", "a.com", "", "/"]),
    ("/path", ["/path", "", "", "", "", "/path"]),
    ("/path?a=b", ["/path?a=b", "", "", "", "", "/path"]),
    ("http://", ["http:", "http", "", "", "", ""]),
    ("http:", ["http:", "http", "", "", "", ""]),
    ("http:foo", ["http:foo", "http", "", "", "", ""]),
    ("mailto:a@b", ["mailto:a@b", "mailto", "", "", "", ""]),
    ("//host/path", ["//host/path", "", "host", "host", "", "/path"]),
    ("https://[::1]:80/", ["https://[::1]:80/", "https", "[::1]:80", "::1", "80", "/"]),
    ("https://[::1]", ["https://[::1]", "https", "[::1]", "::1", "", ""]),
    ("https://[fe80::1%25en0]:80/", ["https://[fe80::1%25en0]:80/", "https", "[fe80::1%en0]:80", "fe80::1%en0", "80", "/"]),
    ("https://a.com:/", ["https://a.com:/", "https", "a.com:", "a.com", "", "/"]),
    ("https://A.COM/", ["https://A.COM/", "https", "A.COM", "A.COM", "", "/"]),
    ("HTTPS://a.com", ["https://a.com", "https", "a.com", "a.com", "", ""]),
    ("https://a.com/a b", ["https://a.com/a%20b", "https", "a.com", "a.com", "", "/a%20b"]),
    ("https://a.com/%41b", ["https://a.com/%41b", "https", "a.com", "a.com", "", "/%41b"]),
    ("https://a.com/é", ["https://a.com/%C3%A9", "https", "a.com", "a.com", "", "/%C3%A9"]),
    ("https://é.com/", ["https://%C3%A9.com/", "https", "é.com", "é.com", "", "/"]),
    ("https://a.com/a?b=c d", ["https://a.com/a?b=c d", "https", "a.com", "a.com", "", "/a"]),
    ("https://a.com/?a=1;b=2", ["https://a.com/?a=1;b=2", "https", "a.com", "a.com", "", "/"]),
    ("https://a.com/?a=%zz&b=1", ["https://a.com/?a=%zz&b=1", "https", "a.com", "a.com", "", "/"]),
    ("https://a.com/?a+b=c+d", ["https://a.com/?a+b=c+d", "https", "a.com", "a.com", "", "/"]),
    ("https://a.com/?a", ["https://a.com/?a", "https", "a.com", "a.com", "", "/"]),
    ("https://a.com/?=x", ["https://a.com/?=x", "https", "a.com", "a.com", "", "/"]),
    ("https://a.com/?a=1&a=2&b=", ["https://a.com/?a=1&a=2&b=", "https", "a.com", "a.com", "", "/"]),
    ("https://a.com/?&&", ["https://a.com/?&&", "https", "a.com", "a.com", "", "/"]),
    ("a+b://c", ["a+b://c", "a+b", "c", "c", "", ""]),
    ("http://a/b?c?d", ["http://a/b?c?d", "http", "a", "a", "", "/b"]),
    ("http://user:pass@h/", ["http://user:pass@h/", "http", "h", "h", "", "/"]),
    ("http://u@s@h/", ["http://u%40s@h/", "http", "h", "h", "", "/"]),
    ("/a//b", ["/a//b", "", "", "", "", "/a//b"]),
    ("///a", ["///a", "", "", "", "", "///a"]),
    ("//", ["", "", "", "", "", ""]),
    ("/", ["/", "", "", "", "", "/"]),
    ("http://a/%2f/b", ["http://a/%2f/b", "http", "a", "a", "", "/%2f/b"]),
    ("http://a/;x", ["http://a/;x", "http", "a", "a", "", "/;x"]),
    ("http://a/b;c=d", ["http://a/b;c=d", "http", "a", "a", "", "/b;c=d"]),
    ("http://a/a%2Fb c", ["http://a/a/b%20c", "http", "a", "a", "", "/a/b%20c"]),
    ("http://a:99999/", ["http://a:99999/", "http", "a:99999", "a", "99999", "/"]),
    ("http://a%25b/", ["http://a%25b/", "http", "a%b", "a%b", "", "/"]),
    ("*", ["*", "", "", "", "", "*"]),
    ("http://a/*", ["http://a/*", "http", "a", "a", "", "/*"]),
    ("/a:b", ["/a:b", "", "", "", "", "/a:b"]),
    ("a:b", ["a:b", "a", "", "", "", ""]),
    ("http://a?x", ["http://a?x", "http", "a", "a", "", ""]),
    ("http://a?", ["http://a?", "http", "a", "a", "", ""]),
    ("http://a/?%41=%42", ["http://a/?%41=%42", "http", "a", "a", "", "/"]),
    ("http://a/\"x\"", ["http://a/%22x%22", "http", "a", "a", "", "/%22x%22"]),
    ("http://a/<x>", ["http://a/%3Cx%3E", "http", "a", "a", "", "/%3Cx%3E"]),
    ("http://a/[x]", ["http://a/[x]", "http", "a", "a", "", "/[x]"]),
    ("http://a/{x}", ["http://a/%7Bx%7D", "http", "a", "a", "", "/%7Bx%7D"]),
    ("http://a/a|b", ["http://a/a%7Cb", "http", "a", "a", "", "/a%7Cb"]),
    ("http://a/a\\b", ["http://a/a%5Cb", "http", "a", "a", "", "/a%5Cb"]),
    ("http://a/^`", ["http://a/%5E%60", "http", "a", "a", "", "/%5E%60"]),
    ("http://a\"b/", ["http://a\"b/", "http", "a\"b", "a\"b", "", "/"]),
    ("http://a<b>/", ["http://a<b>/", "http", "a<b>", "a<b>", "", "/"]),
    ("http://a_b/", ["http://a_b/", "http", "a_b", "a_b", "", "/"]),
    ("http://a,b;c/", ["http://a,b;c/", "http", "a,b;c", "a,b;c", "", "/"]),
    ("http://a!b$c&d(e)*+=:80/", ["http://a!b$c&d(e)*+=:80/", "http", "a!b$c&d(e)*+=:80", "a!b$c&d(e)*+=", "80", "/"]),
    ("http:///path", ["http:///path", "http", "", "", "", "/path"]),
    ("http:/path", ["http:/path", "http", "", "", "", "/path"]),
    ("https:///", ["https:///", "https", "", "", "", "/"]),
    ("/é", ["/%C3%A9", "", "", "", "", "/%C3%A9"]),
    ("http://a/b%20c", ["http://a/b%20c", "http", "a", "a", "", "/b%20c"]),
    ("http://a/(x)", ["http://a/(x)", "http", "a", "a", "", "/(x)"]),
    ("http://h:80/?q#", ["http://h:80/?q", "http", "h:80", "h", "80", "/"]),
    ("http://u:p:q@h/", ["http://u:p%3Aq@h/", "http", "h", "h", "", "/"]),
    ("http://u%41@h/", ["http://uA@h/", "http", "h", "h", "", "/"]),
    ("http://u/x@h/", ["http://u/x@h/", "http", "u", "u", "", "/x@h/"]),
    ("http://:80/", ["http://:80/", "http", ":80", "", "80", "/"]),
    ("http://@h/", ["http://@h/", "http", "h", "h", "", "/"]),
    ("http://[::1%2541]/", ["http://[::1%2541]/", "http", "[::1%41]", "::1%41", "", "/"]),
    ("http://[::1]:/", ["http://[::1]:/", "http", "[::1]:", "::1", "", "/"]),
    ("HtTp://X/Y?Z=A#B", ["http://X/Y?Z=A#B", "http", "X", "X", "", "/Y"]),
    ("http://a/b#c d", ["http://a/b#c%20d", "http", "a", "a", "", "/b"]),
    ("http://a/b#é", ["http://a/b#%C3%A9", "http", "a", "a", "", "/b"]),
    ("/a?b#c", ["/a?b#c", "", "", "", "", "/a"]),
    ("http://a/..;/", ["http://a/..;/", "http", "a", "a", "", "/..;/"]),
    ("http://é%c3%a9/", ["http://%C3%A9%C3%A9/", "http", "éé", "éé", "", "/"]),
    ("http://a%c3%a9/", ["http://a%C3%A9/", "http", "aé", "aé", "", "/"]),
    ("http://a/%C3%A9", ["http://a/%C3%A9", "http", "a", "a", "", "/%C3%A9"]),
    ("http://a/%c3%a9é", ["http://a/%C3%A9%C3%A9", "http", "a", "a", "", "/%C3%A9%C3%A9"]),
    ("file:///etc/passwd", ["file:///etc/passwd", "file", "", "", "", "/etc/passwd"]),
    ("data:,x", ["data:,x", "data", "", "", "", ""]),
    ("urn:a:b", ["urn:a:b", "urn", "", "", "", ""]),
    ("http://a/?a=b&c=%20&d=+", ["http://a/?a=b&c=%20&d=+", "http", "a", "a", "", "/"]),
    ("http://1.2.3.4:1/", ["http://1.2.3.4:1/", "http", "1.2.3.4:1", "1.2.3.4", "1", "/"]),
    ("ws:/x", ["ws:/x", "ws", "", "", "", "/x"]),
    ("/;", ["/;", "", "", "", "", "/;"]),
    ("/=", ["/=", "", "", "", "", "/="]),
    ("/@", ["/@", "", "", "", "", "/@"]),
    ("/$&+,/:;=@", ["/$&+,/:;=@", "", "", "", "", "/$&+,/:;=@"]),
];

#[rustfmt::skip]
const BAD: &[&str] = &[
    "path",
    "",
    "https://[::1",
    "https://::1/",
    "https://a.com:80a/",
    "https://a.com:abc",
    "https://a b.com/",
    "https://a.com/%zz",
    "https://a.com#f?x",
    "https://a.com/\u{7f}",
    "https://a.com/\n",
    "1http://a",
    "-a://b",
    "http://us er@h/",
    "?a=b",
    "#f",
    "http://[a]/",
    "http://[::1]a/",
    "http://%41.com/",
    "http://a%20b/",
    "http://a\\b/",
    "http://a[b]/",
    "http://a/\u{1}",
    "\u{1}",
    "/%",
    "/a%2",
    "http://h:80:90/",
    "http://a/?\u{7f}",
    "http://[::1%25]/",
    "http://[::1]:x/",
    "http://a/b#%zz",
    "a/b:c",
    "./a:b",
];

#[test]
fn parses_urls_as_go() {
    // cel.jsonl "url"
    for &(text, parts) in GOOD {
        let url = Url::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let read = [
            url.to_string(),
            url.scheme().to_owned(),
            url.host(),
            url.hostname(),
            url.port(),
            url.escaped_path(),
        ];
        assert_eq!(read, parts, "{text}");
    }
}

#[test]
fn rejects_urls_that_go_rejects() {
    for text in BAD {
        assert!(Url::parse(text).is_err(), "{text:?}");
    }
    for (text, fault) in [
        ("", UrlFault::Empty),
        ("path", UrlFault::Relative),
        ("https://[::1", UrlFault::MissingBracket),
        ("https://a.com:80a/", UrlFault::Port(":80a".to_owned())),
        ("https://a b.com/", UrlFault::HostCharacter(" ".to_owned())),
        ("https://a.com/%zz", UrlFault::Escape("%zz".to_owned())),
        ("/%", UrlFault::Escape("%".to_owned())),
        ("https://a.com#f?x", UrlFault::HostCharacter("#".to_owned())),
        ("http://us er@h/", UrlFault::UserInfo),
        ("\n", UrlFault::Control),
        (":a", UrlFault::MissingScheme),
    ] {
        assert_eq!(Url::parse(text).unwrap_err().fault, fault, "{text}");
    }
}

#[test]
fn second_colon_in_host_is_invalid_for_http_only() {
    for (text, hostname) in [
        ("ws://h:80:90/", Some("h:80")),
        ("//h:80:90/", Some("h:80")),
        ("HTTP://h:80:90/", None),
        ("//.]/", Some(".]")),
    ] {
        assert_eq!(Url::parse(text).ok().map(|url| url.hostname()).as_deref(), hostname, "{text}");
    }
}

#[test]
fn query_values_keep_their_order() {
    for (query, expected) in [
        ("q=1&q=2&r=", &[("q", &["1", "2"][..]), ("r", &[""])][..]),
        ("a=1;b=2", &[]),
        ("a=%zz&b=1", &[("b", &["1"])]),
        ("a+b=c+d", &[("a b", &["c d"])]),
        ("=x", &[("", &["x"])]),
        ("&&a", &[("a", &[""])]),
        ("%41=%42", &[("A", &["B"])]),
        ("c?d", &[("c?d", &[""])]),
        ("b=1&a=2&b=3", &[("b", &["1", "3"]), ("a", &["2"])]),
    ] {
        let query_of = Url::parse(&format!("https://a.com/?{query}")).unwrap().query();
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(key, values)| {
                ((*key).to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
            })
            .collect();
        assert_eq!(query_of, expected, "{query}");
    }
}

proptest! {
    #[test]
    fn displayed_url_parses_to_the_same_parts(text in "(http|HTTPS|a)?(:|:/|://)(u(:p)?@)?[a-zé.]{0,6}(:[0-9]{0,4})?(/[a-z %é0-9]{0,4}){0,3}(\\?[a-z=&]{0,5})?(#[a-zé]{0,3})?") {
        if let Ok(url) = Url::parse(&text) {
            let form = url.to_string();
            if let Ok(again) = Url::parse(&form) {
                prop_assert_eq!(again.to_string(), form);
                prop_assert_eq!(again.escaped_path(), url.escaped_path());
                prop_assert_eq!(again.query(), url.query());
            }
        }
    }

    #[test]
    fn parsing_urls_never_panics(text in "\\PC{0,20}") {
        if let Ok(url) = Url::parse(&text) {
            let _ = (url.to_string(), url.host(), url.hostname(), url.port(), url.query());
        }
    }
}
