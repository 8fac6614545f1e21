//! Responses of cloud APIs: the result does not depend on how the bytes arrive, and no body exceeds its limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_registries::fuzzing::http_response;

const MAX_BODY_BYTES: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    // Few inputs begin with a valid status line.
    for start in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
    ] {
        check(&[start, bytes].concat());
    }
});

fn check(bytes: &[u8]) {
    let read = |piece_bytes| http_response(bytes, piece_bytes, MAX_BODY_BYTES);
    let whole = read(usize::MAX);
    for piece_bytes in [1, 5] {
        assert_eq!(read(piece_bytes), whole, "in pieces of {piece_bytes}");
    }
    if let Some((status, headers, body)) = whole {
        assert!(body.len() <= MAX_BODY_BYTES && !(100..200).contains(&status));
        assert!(headers.iter().all(|(name, _)| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
    }
}
