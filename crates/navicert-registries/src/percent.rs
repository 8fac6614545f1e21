//! Percent escapes in what others wrote.

use navicert_go::percent::{Plus, decode_lenient};

/// Decodes percent escapes and keeps everything else.
pub(crate) fn percent_decode(text: &str) -> Vec<u8> {
    decode_lenient(text.as_bytes(), Plus::Literal).into_owned()
}
