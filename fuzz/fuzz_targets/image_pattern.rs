//! Any two texts as pattern and image: never panics, and `matches` agrees with `compare`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_image::{ImagePattern, Keyring, Location, Profile, RegistryCredential};

fuzz_target!(|texts: (&str, &str, &str)| {
    let (one, other, image) = texts;
    let location = Location::parse(image.as_bytes());
    for profile in [Profile::Kube, Profile::Hardened] {
        for text in [one, other] {
            if let (Ok(pattern), Ok(location)) = (ImagePattern::parse(text, profile), &location) {
                assert_eq!(pattern.matches(location), pattern.compare(location).is_ok());
            }
        }
        let keyring = Keyring::new([one, other].map(|key| (key, RegistryCredential::default())), profile);
        let _ = (keyring.lookup(image).len(), format!("{keyring:?}"));
    }
});
