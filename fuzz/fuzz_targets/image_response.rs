//! Any bytes as a plugin response, a docker configuration, a provider configuration and a request: never panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_image::author::read_request;
use navicert_image::config::{ConfigFile, ImageConfig, lint};
use navicert_image::docker_config::{read_config_json, read_legacy};
use navicert_image::response::Response;
use navicert_image::{Keyring, Profile};
use navicert_types::image_credential::WireVersion;

fuzz_target!(|bytes: &[u8]| {
    for version in WireVersion::ALL {
        match Response::decode(bytes, version) {
            Ok(response) => drop(Keyring::new(response.auth, Profile::Kube)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let _ = (read_config_json(bytes), read_legacy(bytes), read_request(&mut &*bytes));
    let file = ConfigFile { path: "fuzz".into(), text: bytes.to_vec() };
    for profile in [Profile::Kube, Profile::Hardened] {
        if let Err(errors) = ImageConfig::decode(std::slice::from_ref(&file), profile) {
            assert!(!errors.problems().is_empty());
        }
    }
    let _ = lint(std::slice::from_ref(&file), None);
});
