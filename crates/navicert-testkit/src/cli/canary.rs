//! Secrets planted to be looked for: whatever a program prints must not show one, in any common spelling.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Short secrets turn up by chance, above all in base64.
const MIN_SECRET_BYTES: usize = 8;

/// The secrets of one test.
///
/// ```
/// use navicert_testkit::Canaries;
///
/// let mut canaries = Canaries::new();
/// let token = canaries.plant("token");
/// let output = format!("Authorization: Basic {token}");
/// assert_eq!(canaries.find(output.as_bytes())[0].name, "token");
/// canaries.assert_absent("the help text", b"usage: navicert");
/// ```
#[derive(Clone, Default)]
pub struct Canaries {
    planted: Vec<(String, Vec<u8>)>,
}

/// A secret where none should be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeakedSecret {
    /// The name it was planted under.
    pub name: String,
    /// How it was spelled: `plain`, `base64`, `hex` or `percent`.
    pub form: &'static str,
}

impl Canaries {
    /// None yet.
    pub fn new() -> Self {
        Canaries::default()
    }

    /// Makes a fresh secret: letters, digits and dashes, safe in headers, YAML and shell words.
    pub fn plant(&mut self, name: &str) -> String {
        let mut random = [0u8; 12];
        aws_lc_rs::rand::fill(&mut random).expect("the system's random generator");
        let secret = format!("canary-{}", hex(&random));
        self.adopt(name, secret.as_bytes());
        secret
    }

    /// Also looks for a secret that exists already: a PIN, a key, a password with odd characters.
    ///
    /// # Panics
    /// If it is shorter than eight bytes: it would be found by chance.
    pub fn adopt(&mut self, name: &str, secret: &[u8]) {
        assert!(
            secret.len() >= MIN_SECRET_BYTES,
            "`{name}` is shorter than {MIN_SECRET_BYTES} bytes and would be found by chance"
        );
        self.planted.push((name.to_owned(), secret.to_vec()));
    }

    /// Every secret that `output` shows, with its spelling.
    ///
    /// # Panics
    /// If nothing was planted: such a search proves nothing.
    pub fn find(&self, output: &[u8]) -> Vec<LeakedSecret> {
        assert!(!self.planted.is_empty(), "no canary was planted; this search proves nothing");
        // Folded text (PEM, wrapped base64) is searched without its white space too.
        let unfolded: Vec<u8> = output.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let lower = unfolded.to_ascii_lowercase();
        let unescaped = percent_decoded(output);
        let spelled = |secret: &[u8]| {
            let base64 = base64_forms(secret).iter().any(|form| contains(&unfolded, form.as_bytes()));
            [
                ("plain", contains(output, secret)),
                ("base64", base64),
                ("hex", contains(&lower, hex(secret).as_bytes())),
                ("percent", !contains(output, secret) && contains(&unescaped, secret)),
            ]
        };
        let sightings = |(name, secret): &(String, Vec<u8>)| {
            let found = spelled(secret).into_iter().filter(|(_, found)| *found);
            found.map(|(form, _)| LeakedSecret { name: name.clone(), form }).collect::<Vec<_>>()
        };
        self.planted.iter().flat_map(sightings).collect()
    }

    /// Fails the test if `output` shows a secret. The output itself is not repeated.
    ///
    /// # Panics
    /// If it does.
    pub fn assert_absent(&self, what: &str, output: &[u8]) {
        let sightings = self.find(output);
        assert!(sightings.is_empty(), "{what} shows secrets: {sightings:?}");
    }
}

impl fmt::Debug for Canaries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.planted.iter().map(|(name, _)| name)).finish()
    }
}

/// What base64 text contains wherever the secret stands in it: for each of the three offsets within a group of
/// three bytes, the characters that depend on the secret alone.
fn base64_forms(secret: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for offset in 0..3 {
        let padded = [&[0; 3][..offset], secret].concat();
        // The first characters mix in the bytes before, the last those behind.
        let first = [0, 2, 3][offset];
        let whole = padded.len() * 8 / 6;
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.push(text[first..whole].to_owned());
        }
    }
    forms
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| behind.get(..2)).flatten();
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    decoded
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::*;

    fn planted(secret: &[u8]) -> Canaries {
        let mut canaries = Canaries::new();
        canaries.adopt("it", secret);
        canaries
    }

    fn forms(canaries: &Canaries, output: &[u8]) -> Vec<&'static str> {
        canaries.find(output).into_iter().map(|sighting| sighting.form).collect()
    }

    #[test]
    fn a_secret_is_found_in_base64_at_every_offset_and_alphabet_and_folded() {
        let secret = b"p\xfb\xefa?>ss~word";
        let canaries = planted(secret);
        for before in 0..7 {
            for after in 0..4 {
                let text = [&b"abcdefg"[..before], secret, &b"wxyz"[..after]].concat();
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    assert_eq!(
                        forms(&canaries, encoded.as_bytes()),
                        ["base64"],
                        "{before} before, {after} after"
                    );
                    let folded: Vec<u8> = encoded.bytes().flat_map(|byte| [byte, b'\n']).collect();
                    assert_eq!(forms(&canaries, &folded), ["base64"]);
                }
            }
        }
    }

    #[test]
    fn a_secret_is_found_plain_in_hex_and_percent_encoded() {
        let canaries = planted(b"pass word/1");
        assert_eq!(forms(&canaries, b"x pass word/1 y"), ["plain"]);
        assert_eq!(forms(&canaries, b"70617373 20776F72642F31"), ["hex"]);
        assert_eq!(forms(&canaries, b"q=pass%20word%2f1&"), ["percent"]);
        assert_eq!(forms(&canaries, b"%70%61%73%73%20%77%6f%72%64%2F%31"), ["percent"]);
    }

    #[test]
    fn harmless_output_and_broken_escapes_show_nothing() {
        let mut canaries = Canaries::new();
        let secret = canaries.plant("token");
        canaries.assert_absent("nothing", b"");
        canaries.assert_absent("broken escapes", b"% %4 %zz %\xff\xff 100%");
        canaries.assert_absent("a part of it", &secret.as_bytes()[..12]);
        canaries.assert_absent("their own debug text", format!("{canaries:?}").as_bytes());
        assert_ne!(secret, canaries.plant("another"));
    }

    #[test]
    #[should_panic(expected = "the log shows secrets")]
    fn a_sighting_fails_the_test() {
        let mut canaries = Canaries::new();
        let secret = canaries.plant("token");
        canaries.assert_absent("the log", format!("token={secret}").as_bytes());
    }

    #[test]
    #[should_panic(expected = "this search proves nothing")]
    fn a_search_without_canaries_fails_the_test() {
        Canaries::new().assert_absent("the log", b"");
    }
}
