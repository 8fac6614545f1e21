//! The header of a load balancer: reads exactly the header, and the address only from its own family.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_server::fuzzing::proxy_header;

fuzz_target!(|bytes: &[u8]| {
    // Few inputs begin with a signature.
    for start in [
        &b""[..],
        b"PROXY TCP4 ",
        b"PROXY TCP6 ",
        b"PROXY ",
        b"\r\n\r\n\0\r\nQUIT\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21",
    ] {
        check(&[start, bytes].concat());
    }
});

fn check(bytes: &[u8]) {
    let Some((address, rest)) = proxy_header(bytes) else { return };
    assert!(bytes.ends_with(rest));
    let header = &bytes[..bytes.len() - rest.len()];
    // A header is complete: without its last byte it is invalid, and what follows makes no difference.
    assert!(proxy_header(&header[..header.len() - 1]).is_none(), "an incomplete header is accepted");
    assert_eq!(proxy_header(header), Some((address, &b""[..])));
    match address {
        Some(address) if header.starts_with(b"PROXY ") => {
            assert!(header.ends_with(b"\r\n") && header.len() <= 107);
            let family = if address.is_ipv4() { "TCP4" } else { "TCP6" };
            assert!(header[6..].starts_with(family.as_bytes()), "an address of the other family");
        }
        Some(address) => assert_eq!(header[13], if address.is_ipv4() { 0x11 } else { 0x21 }),
        None => {}
    }
}
