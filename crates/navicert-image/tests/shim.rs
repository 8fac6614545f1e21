//! The shim provider: a kubelet plugin whose own providers change between calls.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use navicert_image::response::Response;
use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;
use navicert_types::image_credential::WireVersion;

const SHIM: &str = env!("CARGO_BIN_EXE_navicert-image-provider");

fn plugin(dir: &Path, name: &str, key_type: &str, duration: &str) {
    let text = format!(
        "#!/bin/sh\nrequest=$(cat)\ncase \"$request\" in *serviceAccountToken*) user=with-token;; *) user={name};; esac\n\
         echo \"{{\\\"kind\\\":\\\"CredentialProviderResponse\\\",\\\"apiVersion\\\":\\\"credentialprovider.kubelet.k8s.io/v1\\\",\
         \\\"cacheKeyType\\\":\\\"{key_type}\\\",\\\"cacheDuration\\\":\\\"{duration}\\\",\
         \\\"auth\\\":{{\\\"a.io\\\":{{\\\"username\\\":\\\"$user\\\",\\\"password\\\":\\\"p\\\"}}}}}}\"\n"
    );
    fs::write(dir.join(name), text).unwrap();
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn config(providers: &[&str], more: &str) -> String {
    let head =
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n".to_owned();
    let provider = |name: &&str| {
        format!(
            "- name: {name}\n  matchImages: [a.io]\n  defaultCacheDuration: 1h\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n{more}"
        )
    };
    head + &providers.iter().map(provider).collect::<String>()
}

fn call(dir: &Path, version: WireVersion, more: &str) -> Outcome {
    let request = format!(
        r#"{{"kind":"CredentialProviderRequest","apiVersion":"{}","image":"a.io/x"{more}}}"#,
        version.api_version()
    );
    Program::new(SHIM)
        .arguments(["--config", "config.yaml", "--bin-dir", "bin", "--last-good", "last-good.yaml"])
        .directory(dir)
        .stdin(request)
        .run()
        .unwrap()
}

fn answer(outcome: &Outcome, version: WireVersion) -> Response {
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    Response::decode(&outcome.stdout, version).unwrap()
}

fn dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    plugin(&dir.path().join("bin"), "one", "Registry", "2h");
    plugin(&dir.path().join("bin"), "two", "Image", "3h");
    fs::write(dir.path().join("config.yaml"), config(&["one"], "")).unwrap();
    dir
}

#[test]
fn applies_change_at_the_next_call_and_tolerates_partial_writes() {
    // I8, I250
    let dir = dir();
    let (path, done) = (dir.path().join("config.yaml"), AtomicBool::new(false));
    let users: BTreeSet<String> = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if done.load(Ordering::SeqCst) {
                    return;
                }
                // Write in place and in chunks, like some editors: the file is empty, then partial.
                let text = config(&[["one", "two"][number % 2]], "");
                let mut file = fs::File::create(&path).unwrap();
                for chunk in text.as_bytes().chunks(64) {
                    file.write_all(chunk).unwrap();
                    thread::yield_now();
                }
                drop(file);
                // Leave the complete file in place long enough to be read sometimes.
                for _ in 0..2_000 {
                    thread::yield_now();
                }
            }
        });
        let mut users = BTreeSet::new();
        // At least so many calls, and more if the writer gets little of a busy processor.
        for number in 0..2_000 {
            if number >= 40 && users.len() == 2 {
                break;
            }
            let answer = answer(&call(dir.path(), WireVersion::V1, ""), WireVersion::V1);
            users.insert(answer.auth.first().unwrap().1.username.clone());
        }
        done.store(true, Ordering::SeqCst);
        users
    });
    assert_eq!(users, ["one", "two"].map(str::to_owned).into(), "both configurations were seen");
}

#[test]
fn falls_back_to_last_valid_configuration_with_a_warning() {
    // I250
    let dir = dir();
    answer(&call(dir.path(), WireVersion::V1, ""), WireVersion::V1);
    fs::write(dir.path().join("config.yaml"), "providers: [").unwrap();
    let outcome = call(dir.path(), WireVersion::V1, "");
    assert_eq!(answer(&outcome, WireVersion::V1).auth.first().unwrap().1.username, "one");
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("using the last valid configuration"));
    fs::remove_file(dir.path().join("last-good.yaml")).unwrap();
    let outcome = call(dir.path(), WireVersion::V1, "");
    assert_eq!((outcome.code(), outcome.stdout.len()), (Some(1), 0));
}

#[test]
fn merges_responses_with_narrowest_scope_and_shortest_lifetime() {
    let dir = dir();
    fs::write(dir.path().join("config.yaml"), config(&["one", "two"], "")).unwrap();
    for version in WireVersion::ALL {
        let joined = answer(&call(dir.path(), version, ""), version);
        assert_eq!(joined.cache_key_type.as_str(), "Image");
        assert_eq!(joined.cache_duration.unwrap().to_string(), "2h0m0s");
        assert_eq!(joined.auth.first().unwrap().1.username, "one", "the first provider's credential wins");
    }
}

#[test]
fn passes_on_the_kubelets_token() {
    // I109
    let dir = dir();
    let more = "  tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true}\n";
    fs::write(dir.path().join("config.yaml"), config(&["one"], more)).unwrap();
    let with = call(dir.path(), WireVersion::V1, r#","serviceAccountToken":"t""#);
    assert_eq!(answer(&with, WireVersion::V1).auth.first().unwrap().1.username, "with-token");
    assert!(answer(&call(dir.path(), WireVersion::V1, ""), WireVersion::V1).auth.is_empty());
}

#[test]
fn returns_empty_response_if_no_provider_matches() {
    // I106
    let dir = dir();
    fs::write(dir.path().join("config.yaml"), config(&["one"], "").replace("[a.io]", "[b.io]")).unwrap();
    let nothing = answer(&call(dir.path(), WireVersion::V1, ""), WireVersion::V1);
    assert!(nothing.auth.is_empty());
    assert_eq!(nothing.cache_duration.unwrap().to_string(), "30s");
}
