//! Any text as an image name: never panics, and accepted names are normalized and contain no URL delimiters.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_image::Repository;

fuzz_target!(|text: &str| {
    if let Ok(repository) = Repository::from_image(text) {
        assert_eq!(Repository::from_image(repository.as_str()).as_ref(), Ok(&repository));
        assert!(!repository.as_str().contains(['@', '?', '#', '%', '\n', '\0']), "{repository}");
    }
    let _ = navicert_image::docker_helper::normalise_server(text);
});
