//! Untrusted text in HTML: control and bidirectional characters replaced, cut, escaped.
// L933

use navicert_types::redact;

/// Longest untrusted text, in characters.
const MAX_CHARS: usize = 300;

/// The text as HTML of at most `max_bytes` bytes, on one line. It is safe as text and in a quoted attribute.
pub(super) fn escape(text: &str, max_bytes: usize) -> String {
    const ELLIPSIS: &str = "…";
    let cleaned = redact::line(text);
    let mut html = String::new();
    for (count, character) in cleaned.chars().enumerate() {
        let mut buffer = [0; 4];
        let escaped = match character {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&#34;",
            '\'' => "&#39;",
            other => other.encode_utf8(&mut buffer),
        };
        // Room for the ellipsis is kept: the text may go on.
        if count >= MAX_CHARS || html.len() + escaped.len() + ELLIPSIS.len() > max_bytes {
            html.push_str(ELLIPSIS);
            break;
        }
        html.push_str(escaped);
    }
    html
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_becomes_text() {
        // L1303
        assert_eq!(
            escape("<script>alert('x')</script> & \"y\"", 900),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &#34;y&#34;"
        );
        assert_eq!(escape("</title><img src=x onerror=alert(1)>", 900).matches(['<', '>']).count(), 0);
        assert_eq!(escape("Ännchen 漢字 👋", 900), "Ännchen 漢字 👋");
    }

    #[test]
    fn control_and_bidirectional_characters_are_replaced() {
        // L1302, L933
        assert_eq!(escape("a\u{1b}[2J\u{202e}b\nc\u{0}", 900), "aU+001B[2JU+202EbU+000AcU+0000");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(escape(&"a".repeat(300), 900), "a".repeat(300));
        assert_eq!(escape(&"a".repeat(301), 900), format!("{}…", "a".repeat(300)));
        assert_eq!(escape("&&&&", 13), "&amp;&amp;…", "entities stay whole");
    }

    proptest! {
        #[test]
        fn never_longer_than_the_limit_and_never_markup(text in any::<String>(), max_bytes in 3_usize..2000) {
            let html = escape(&text, max_bytes);
            prop_assert!(html.len() <= max_bytes, "{} bytes", html.len());
            let has_special = html.contains(['<', '>', '"', '\'']);
            prop_assert!(!has_special);
            for after in html.split('&').skip(1) {
                let is_entity = ["amp;", "lt;", "gt;", "#34;", "#39;"].iter().any(|entity| after.starts_with(entity));
                prop_assert!(is_entity, "{html}");
            }
        }
    }
}
