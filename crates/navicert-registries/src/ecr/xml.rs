//! Minimal XML reader for STS responses: the text of an element by its path. Only the five predefined entities, no
//! DTD, no recursion.

/// The text of the first element at this path; `None` if it is missing or the document is malformed.
pub(crate) fn text_at(document: &str, path: &[&str]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = document;
    loop {
        let here = open == path;
        let (before, behind) = rest.split_once('<')?;
        if here {
            text.push_str(&unescape(before)?);
        }
        if let Some(inner) = behind.strip_prefix("![CDATA[") {
            let (data, after) = inner.split_once("]]>")?;
            if here {
                text.push_str(data);
            }
            rest = after;
            continue;
        }
        if let Some(inner) = behind.strip_prefix("!--") {
            rest = inner.split_once("-->")?.1;
            continue;
        }
        let (tag, after) = behind.split_once('>')?;
        rest = after;
        if tag.starts_with(['?', '!']) {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if here {
                return Some(text);
            }
            if open.pop()? != name.trim() {
                return None;
            }
            continue;
        }
        let name = tag.split(|c: char| c.is_ascii_whitespace() || c == '/').next()?;
        if !tag.ends_with('/') {
            open.push(name);
            text.clear();
        }
        if open.len() > 32 {
            return None;
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        plain.push_str(before);
        let (entity, after) = behind.split_once(';')?;
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let digits = entity.strip_prefix('#')?;
                let number = match digits.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => digits.parse().ok()?,
                };
                char::from_u32(number)?
            }
        });
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_element_by_full_path() {
        let document = "<?xml version=\"1.0\"?><!-- <A><B>no</B></A> --><A xmlns=\"x\"><C><B>not here</B></C><E/>\
                        <B a='1'>x&amp;y&#x21;<![CDATA[<z>]]></B><B>second</B></A>";
        assert_eq!(text_at(document, &["A", "B"]).as_deref(), Some("x&y!<z>"));
        assert_eq!(text_at(document, &["A", "C", "B"]).as_deref(), Some("not here"));
        assert_eq!(text_at(document, &["B"]), None);
        assert_eq!(text_at(document, &["A", "D"]), None);
    }

    #[test]
    fn malformed_documents_yield_none() {
        for document in
            ["", "<", "<A>", "<A></B>", "<A><B>&nope;</B></A>", "<A><B>&#xD800;</B></A>", "<!-- <A>", "</A>"]
        {
            assert_eq!(text_at(document, &["A", "B"]), None, "{document}");
        }
        let deep = "<A>".repeat(100_000);
        assert_eq!(text_at(&deep, &["A", "B"]), None);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "[<>/A&;#x!\\-\\[\\]CDAT? é]{0,60}") {
            let _ = text_at(&text, &["A"]);
        }
    }
}
