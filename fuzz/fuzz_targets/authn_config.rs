//! Any bytes as an AuthenticationConfiguration, a test suite, a side-car and a source of `--oidc-*` flags: read, judged
//! and looked over in both profiles. What kube accepts must be one of the things that hardened knows how to refuse.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_authn::Profile;
use navicert_authn::config::{NavicertConfiguration, lint, load, migrate};
use navicert_types::authentication_test::AuthenticationTest;

fuzz_target!(|bytes: &[u8]| {
    for profile in [Profile::KUBE, Profile::HARDENED] {
        match load(bytes, &profile) {
            Ok(loaded) => {
                let _ = lint::lint(&loaded);
            }
            Err(error) => {
                let _ = error.to_string();
            }
        }
    }
    let _ = NavicertConfiguration::parse(bytes);
    let _ = AuthenticationTest::parse(bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok((_, flags)) = migrate::find(text)
        && let Ok(migration) = migrate::migrate(&flags, &migrate::Options::default())
    {
        // S205: what is written is read back as what was meant.
        let read = load(migration.yaml.as_bytes(), &Profile::KUBE).expect("own output is valid");
        assert_eq!(read.configuration, migration.configuration);
    }
});
