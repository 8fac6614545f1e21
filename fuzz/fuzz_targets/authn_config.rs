//! Any bytes as an AuthenticationConfiguration, a test suite, a navicert configuration and a source of `--oidc-*` flags:
//! loaded, validated and linted in both profiles.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_authn::AuthnProfile;
use navicert_authn::config::{NavicertConfiguration, lint, load, migrate};
use navicert_types::authentication_test::AuthenticationTest;

fuzz_target!(|bytes: &[u8]| {
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
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
        && let Ok((_, flags)) = migrate::find_flags(text)
        && let Ok(migration) = migrate::migrate(&flags, &migrate::MigrateOptions::default())
    {
        // S205: the written configuration loads as the migrated one.
        let read = load(migration.yaml.as_bytes(), &AuthnProfile::KUBE).expect("own output is valid");
        assert_eq!(read.configuration, migration.configuration);
    }
});
