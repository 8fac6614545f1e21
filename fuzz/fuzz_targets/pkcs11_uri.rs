//! Any text as a `pkcs11:` URI, and behind its scheme: what is read can be written, and means the same when it is read
//! again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_signer::pkcs11::Uri;

fuzz_target!(|text: &str| {
    // Few guesses begin with the scheme.
    for text in [text, &format!("pkcs11:{text}")] {
        if let Ok(uri) = text.parse::<Uri>() {
            assert_eq!(uri.to_string().parse::<Uri>().as_ref(), Ok(&uri));
        }
    }
});
