//! Prints an error together with its sources. Errors of this workspace print no source themselves, so the place that
//! prints one, such as a log line or a command's last message, calls [`error_chain`].

use std::error::Error;

/// Maximum number of sources that are printed; `…` stands for the rest.
const MAX_SOURCES: usize = 16;

/// An error and its sources on one line, outermost first, separated by `: `.
///
/// Some libraries repeat a source at the end of their own text; it is printed once. Sources without text are skipped.
/// The result contains what the errors print and is not redacted.
///
/// ```
/// use navicert_types::error_chain;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("failed to read `token`")]
/// struct ReadError(#[source] std::io::Error);
///
/// let error = ReadError(std::io::Error::other("disk failure"));
/// assert_eq!(error_chain(&error), "failed to read `token`: disk failure");
/// ```
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    for _ in 0..MAX_SOURCES {
        let Some(source) = next else { return text };
        append(&mut text, &source.to_string());
        next = source.source();
    }
    if next.is_some() {
        append(&mut text, "…");
    }
    text
}

fn append(text: &mut String, source: &str) {
    if text.ends_with(source) {
        return;
    }
    if !text.is_empty() {
        text.push_str(": ");
    }
    text.push_str(source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: String,
        source: Option<Box<Link>>,
    }

    /// A chain of errors, outermost first.
    fn links(texts: &[&str]) -> Link {
        let mut texts = texts.iter().rev();
        let innermost = Link { text: (*texts.next().unwrap()).to_owned(), source: None };
        texts
            .fold(innermost, |source, text| Link { text: (*text).to_owned(), source: Some(Box::new(source)) })
    }

    #[test]
    fn joins_sources_with_colons() {
        assert_eq!(error_chain(&links(&["alone"])), "alone");
        assert_eq!(error_chain(&links(&["outer", "middle", "inner"])), "outer: middle: inner");
    }

    #[test]
    fn prints_a_repeated_source_once() {
        assert_eq!(error_chain(&links(&["outer: inner", "inner", "cause"])), "outer: inner: cause");
        assert_eq!(error_chain(&links(&["a: b: c", "b: c", "c"])), "a: b: c");
        // A text that occurs elsewhere by chance is a different cause.
        assert_eq!(error_chain(&links(&["token file: unreadable", "file"])), "token file: unreadable: file");
    }

    #[test]
    fn skips_empty_texts() {
        assert_eq!(error_chain(&links(&["outer", "", "inner"])), "outer: inner");
        assert_eq!(error_chain(&links(&["", "inner"])), "inner");
        assert_eq!(error_chain(&links(&["", ""])), "");
    }

    #[test]
    fn bounds_the_depth() {
        let numbers: Vec<String> = (0..40).map(|number| format!("e{number}")).collect();
        let texts: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let printed = error_chain(&links(&texts));
        assert!(printed.ends_with(": e15: e16: …"), "{printed}");
        let exactly = error_chain(&links(&texts[..=MAX_SOURCES]));
        assert!(exactly.ends_with(": e15: e16"), "{exactly}");
    }
}
