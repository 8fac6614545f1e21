//! Minimal HTTP/2 encoding for tests that violate the protocol: frames, and header fields without HPACK compression.

/// What a client says first: the preface and empty settings.
pub fn preface() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, &[])].concat()
}

/// A frame.
///
/// # Panics
/// If the payload does not fit into one.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload that fits into a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A GET of `path` on this stream, complete.
pub fn get(stream: u32, authority: &str, path: &str, token: &str) -> Vec<u8> {
    let bearer = format!("Bearer {token}");
    // :method GET, :scheme https, :path, :authority, authorization: names from the static table, values as they are.
    let fields =
        [vec![0x82, 0x87, 0x04], text(path), vec![0x01], text(authority), vec![0x0f, 0x08], text(&bearer)];
    frame(1, 0x5, stream, &fields.concat())
}

/// Takes a stream back: CANCEL.
pub fn reset(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &8u32.to_be_bytes())
}

/// Whether the peer has said that it takes no more streams.
pub fn has_goaway(mut bytes: &[u8]) -> bool {
    while let Some(head) = bytes.first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if head[3] == 7 {
            return true;
        }
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    false
}

/// A string of HPACK, not compressed.
fn text(text: &str) -> Vec<u8> {
    let byte = |number: usize| u8::try_from(number).expect("a number below 128");
    let (mut bytes, mut rest) = (Vec::new(), text.len());
    if rest >= 127 {
        bytes.push(127);
        rest -= 127;
        while rest >= 128 {
            bytes.push(byte(rest % 128) | 0x80);
            rest /= 128;
        }
    }
    bytes.push(byte(rest));
    [&bytes, text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goaway_is_found_behind_other_frames() {
        let settings = frame(4, 0, 0, &[0; 6]);
        let goaway = frame(7, 0, 0, &[0; 8]);
        assert!(has_goaway(&[settings.clone(), goaway].concat()));
        assert!(!has_goaway(&[settings.clone(), settings[..8].to_vec()].concat()));
    }

    // RFC 7541, C.1.2: 1337 with a prefix of five bits is 31, 154, 10; ours has seven.
    #[test]
    fn a_long_string_has_a_long_length() {
        assert_eq!(text("ab"), b"\x02ab");
        assert_eq!(text(&"x".repeat(127))[..2], [127, 0]);
        assert_eq!(text(&"x".repeat(1337))[..3], [127, 0xba, 0x09]);
    }
}
