use proptest::prelude::*;

use super::*;

/// What hyper receives when the bytes arrive in pieces of this size.
fn inspected(bytes: &[u8], size: usize) -> Vec<u8> {
    inspect_all(bytes, size).1
}

/// Whether no rule is violated when the bytes arrive in pieces of this size. A NUL that arrives alone looks the same
/// before and after it was overwritten.
fn is_passed(bytes: &[u8], size: usize) -> bool {
    let (frames, seen) = inspect_all(bytes, size);
    let is_passed = frames.position != FramePosition::Rejected;
    assert!(!is_passed || seen == bytes, "{}", bytes.escape_ascii());
    is_passed
}

fn inspect_all(bytes: &[u8], size: usize) -> (RequestFraming, Vec<u8>) {
    let mut frames = RequestFraming::default();
    let mut all = bytes.to_vec();
    for piece in all.chunks_mut(size.max(1)) {
        assert_eq!(frames.inspect(piece, 64 * 1024), Inspection::Passed);
    }
    (frames, all)
}

fn is_accepted(bytes: &[u8]) -> bool {
    let whole = is_passed(bytes, bytes.len());
    for size in 1..bytes.len() {
        assert_eq!(is_passed(bytes, size), whole, "in pieces of {size}: {}", bytes.escape_ascii());
    }
    whole
}

#[test]
fn passes_valid_requests_unchanged_in_any_fragmentation() {
    for request in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"GET /a?b=c;d HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab\ncdGET / HTTP/1.1\r\nHost:a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: Chunked\r\n\r\n3\r\na\n\r\r\n0a\r\n0123456789\r\n0\r\nt: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\n\n\0\r\xff any bytes \n",
    ] {
        assert!(is_accepted(request), "{}", request.escape_ascii());
    }
}

// A75, PV9
#[test]
fn rejects_ambiguous_requests() {
    for request in [
        &b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n: no name\r\n\r\n",
        b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=\n\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na b: c\r\n\r\n",
    ] {
        assert!(!is_accepted(request), "{}", request.escape_ascii());
    }
}

#[test]
fn checks_later_requests_as_strictly_as_the_first() {
    let good = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let bad = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let both = [&good[..], bad].concat();
    let seen = inspected(&both, both.len());
    assert!(seen.starts_with(good) && seen.get(good.len()..).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn keeps_no_copy_of_an_unfinished_head() {
    let mut frames = RequestFraming::default();
    for name in ["GET /", "Authorization: Bearer ", "x", "Impersonate-Extra-"] {
        let mut part = [name.as_bytes(), "a".repeat(50_000).as_bytes()].concat();
        assert_eq!(frames.inspect(&mut part, usize::MAX), Inspection::Passed);
        assert!(frames.partial.capacity() <= 64, "{name}: {} bytes", frames.partial.capacity());
        let mut end = if name == "x" { b":\r\n".to_vec() } else { b"\r\n".to_vec() };
        let colon = name.starts_with("Impersonate");
        if !colon {
            frames.inspect(&mut end, usize::MAX);
            assert!(end.ends_with(b"\r\n"), "{name}");
        }
    }
    assert_eq!(frames.unfinished_bytes(), 200_000 + 5 + 22 + 1 + 18 + 2 + 2 + 3);
}

#[test]
fn counts_unfinished_heads_and_rejects_large_ones() {
    let request = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n";
    let mut frames = RequestFraming::default();
    let (start, rest) = request.split_at(20);
    assert_eq!(frames.inspect(&mut start.to_vec(), request.len()), Inspection::Passed);
    assert_eq!(frames.unfinished_bytes(), 20);
    assert_eq!(frames.inspect(&mut rest.to_vec(), request.len()), Inspection::Passed);
    assert_eq!(frames.unfinished_bytes(), 0);
    assert_eq!(frames.inspect(&mut b"ab".to_vec(), request.len()), Inspection::Passed);
    assert_eq!(frames.unfinished_bytes(), 0, "a body is no head");
    for size in 1..=request.len() {
        let mut frames = RequestFraming::default();
        let mut all = request.to_vec();
        let found: Vec<_> =
            all.chunks_mut(size).map(|piece| frames.inspect(piece, request.len() - 1)).collect();
        assert!(found.contains(&Inspection::HeadTooLarge), "in pieces of {size}: {found:?}");
    }
}

proptest! {
    #[test]
    fn fragmentation_does_not_change_the_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1usize..50) {
        prop_assert_eq!(is_passed(&bytes, size), is_passed(&bytes, bytes.len()));
    }

    #[test]
    fn fragmentation_does_not_change_the_verdict_on_parts_of_requests(
        parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..20),
        size in 1usize..30,
    ) {
        let bytes = parts.concat().into_bytes();
        prop_assert_eq!(is_passed(&bytes, size), is_passed(&bytes, bytes.len()), "{}", bytes.escape_ascii());
    }
}

/// Parts of requests, valid in some orders.
const PARTS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    ":",
    "#",
    "x",
    "Host: a\r\n",
    "Content-Length: 3",
    "content-length:  0 ",
    "Content-Lengthy: x\r\n",
    "Transfer-Encoding: chunked",
    "Upgrade: x",
    "CONNECT ",
    "3\r\nabc\r\n",
    "0\r\n\r\n",
];

// RFC 9110, section 5.6.2
#[test]
fn token_bytes_are_letters_digits_and_fifteen_symbols() {
    let expected = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    for byte in 0..=u8::MAX {
        assert_eq!(is_token_byte(byte), expected(byte), "{byte:#x}");
    }
}
