//! Any text as a `pkcs11:` URI, with and without the scheme: parsed URIs round-trip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_signer::pkcs11::Pkcs11Uri;

fuzz_target!(|text: &str| {
    // Few inputs begin with the scheme.
    for text in [text, &format!("pkcs11:{text}")] {
        if let Ok(uri) = text.parse::<Pkcs11Uri>() {
            assert_eq!(uri.to_string().parse::<Pkcs11Uri>().as_ref(), Ok(&uri));
        }
    }
});
