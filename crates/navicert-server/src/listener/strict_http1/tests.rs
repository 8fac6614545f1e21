use proptest::prelude::*;

use super::*;

/// What hyper receives when the bytes arrive in pieces of this size.
fn inspected(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut frames = RequestFraming::new(64 * 1024);
    let mut all = bytes.to_vec();
    for piece in all.chunks_mut(size.max(1)) {
        frames.inspect(piece);
    }
    all
}

fn is_accepted(bytes: &[u8]) -> bool {
    let whole = inspected(bytes, bytes.len());
    for size in 1..bytes.len() {
        let pieces = inspected(bytes, size);
        assert_eq!(pieces == bytes, whole == bytes, "in pieces of {size}: {}", bytes.escape_ascii());
    }
    whole == bytes
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

proptest! {
    #[test]
    fn fragmentation_does_not_change_the_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1usize..50) {
        let (pieces, whole) = (inspected(&bytes, size), inspected(&bytes, bytes.len()));
        prop_assert_eq!(pieces == bytes, whole == bytes);
    }
}
