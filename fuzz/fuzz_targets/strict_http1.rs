//! Bytes of a client on an HTTP/1.1 connection: the verdict does not depend on how the bytes arrive, nothing but the
//! client's bytes or NULs reaches the parser, and accepted requests have one framing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_server::fuzzing::strict_http1;

const MAX_HEAD_BYTES: usize = 16 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let whole = strict_http1(bytes, usize::MAX, MAX_HEAD_BYTES);
    check_output(bytes, &whole);
    // A client's NUL looks like a replaced byte.
    if bytes.contains(&0) {
        return;
    }
    for piece_bytes in [1, 2, 3, 7, 64] {
        let pieces = strict_http1(bytes, piece_bytes, MAX_HEAD_BYTES);
        check_output(bytes, &pieces);
        assert_eq!(is_rejected(bytes, &pieces), is_rejected(bytes, &whole), "in pieces of {piece_bytes}");
    }
    if !is_rejected(bytes, &whole) {
        check_framing(&whole);
    }
});

/// Whether bytes were replaced.
fn is_rejected(sent: &[u8], received: &[u8]) -> bool {
    !sent.starts_with(received)
}

fn check_output(sent: &[u8], received: &[u8]) {
    assert!(received.len() <= sent.len(), "more bytes than were sent");
    let end = sent.iter().zip(received).take_while(|(sent, received)| sent == received).count();
    assert!(received[end..].iter().all(|byte| *byte == 0), "other bytes than were sent");
}

/// Follows the requests with another parser of heads.
fn check_framing(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 512];
        let mut request = httparse::Request::new(&mut headers);
        let head = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            // Incomplete, or invalid in another way: hyper rejects it.
            _ => return,
        };
        let values = |name: &str| -> Vec<&[u8]> {
            let fields = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
            fields.map(|field| field.value).collect()
        };
        let (lengths, encodings) = (values("content-length"), values("transfer-encoding"));
        assert!(lengths.len() + encodings.len() <= 1, "two framings");
        assert!(bytes[..head].ends_with(b"\r\n\r\n"), "the head ends without an empty line");
        let lines = bytes[..head].split(|byte| *byte == b'\n').count();
        assert_eq!(
            lines,
            bytes[..head].windows(2).filter(|pair| pair == b"\r\n").count() + 1,
            "a bare line feed"
        );
        if request.method == Some("CONNECT") || !values("upgrade").is_empty() {
            return;
        }
        bytes = &bytes[head..];
        if let [length] = lengths.as_slice() {
            let length: u64 =
                std::str::from_utf8(length).unwrap().trim().parse().expect("a length of digits");
            bytes = usize::try_from(length).ok().and_then(|length| bytes.get(length..)).unwrap_or_default();
        } else if !encodings.is_empty() {
            match end_of_chunks(bytes) {
                Some(end) => bytes = &bytes[end..],
                None => return,
            }
        }
    }
}

/// The length of a complete chunked body.
fn end_of_chunks(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = bytes[at..].windows(2).position(|pair| pair == b"\r\n")?;
        let digits = std::str::from_utf8(&bytes[at..at + line]).expect("a chunk size of digits");
        assert!(!digits.contains('+'), "a signed chunk size");
        let size = usize::from_str_radix(digits, 16).expect("a chunk size of digits");
        at += line + 2;
        if size == 0 {
            break;
        }
        at = at.checked_add(size)?;
        let after = bytes.get(at..)?;
        // Judged when the line is complete; the HTTP parser waits for two bytes only.
        if !after.contains(&b'\n') {
            return None;
        }
        assert!(after.starts_with(b"\r\n"), "no end of a chunk");
        at += 2;
    }
    loop {
        let line = bytes[at..].windows(2).position(|pair| pair == b"\r\n")?;
        at += line + 2;
        if line == 0 {
            return Some(at);
        }
    }
}
