//! The scene about image credentials: a registry with a password, one provider, what a kubelet would do with it, and
//! then skopeo pulling through the helper.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use navicert_testkit::http_server::Request;
use navicert_testkit::{Answer, Ca, HttpServer, Program};
use serde_json::{Value, json};

use super::{Stage, beside, write};

const PASSWORD: &str = "this-is-a-password";
const IMAGE: &str = "team/app";

/// Tells it.
pub(super) fn tell(stage: &Stage) -> Result<(), String> {
    let registry = registry();
    let host = registry.address().to_string();
    let address = registry.address().ip().to_string();
    let image = format!("{host}/{IMAGE}:v1");
    prepare(stage, &host, &address)?;

    stage.scene("Image credentials: one provider, and why a kubelet would ask it. Nothing secret is shown.");
    stage.show("cat providers.yaml", &Program::new("cat").arguments(["providers.yaml"]), 0)?;
    println!("$ export NAVICERT_IMAGE_CONFIG=providers.yaml NAVICERT_IMAGE_BIN_DIR=bin\n");
    stage.run(&["image", "explain", &image], 0)?;

    stage.scene("The same provider for everybody else: skopeo, podman and docker ask it through a helper.");
    stage.show("cat auth.json", &Program::new("cat").arguments(["auth.json"]), 0)?;
    let source = format!("docker://{image}");
    let words =
        ["copy", "--quiet", "--src-tls-verify=false", "--authfile", "auth.json", &source, "dir:pulled"];
    let pull = Program::new("skopeo").arguments(["--insecure-policy"]).arguments(words);
    match Program::new("skopeo").arguments(["--version"]).run() {
        Ok(_) => {
            stage.show(&format!("skopeo --insecure-policy {} && ls pulled", words.join(" ")), &pull, 0)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skopeo is not installed here, so that nobody pulls now.\n");
            return Ok(());
        }
        Err(error) => return Err(format!("cannot run skopeo: {error}")),
    }
    stage.show_output(&Program::new("ls").arguments(["pulled"]), 0)
}

/// The configuration, the provider, and where skopeo looks for helpers.
fn prepare(stage: &Stage, host: &str, address: &str) -> Result<(), String> {
    let folder = stage.folder.path();
    let config = format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: registry-login\n  \
         matchImages: ['{address}', '{host}']\n  defaultCacheDuration: 10m\n  \
         apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
    );
    write(&folder.join("providers.yaml"), &config)?;
    let answer = json!({
        "kind": "CredentialProviderResponse",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "cacheKeyType": "Registry",
        "auth": {host: {"username": "ann", "password": PASSWORD}},
    });
    let helpers = json!({"credHelpers": {host: "navicert"}});
    write(&folder.join("auth.json"), &format!("{helpers}\n"))?;
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).map_err(|error| format!("cannot make a folder: {error}"))?;
    let provider = bin.join("registry-login");
    write(&provider, &format!("#!/bin/sh\ncat >/dev/null\necho '{answer}'\n"))?;
    std::fs::set_permissions(&provider, Permissions::from_mode(0o755))
        .map_err(|error| format!("cannot make {} executable: {error}", provider.display()))?;
    let helper = beside("docker-credential-navicert")?;
    std::os::unix::fs::symlink(&helper, bin.join("docker-credential-navicert"))
        .map_err(|error| format!("cannot link {}: {error}", helper.display()))
}

/// A registry with one image of one empty layer. It lets only ann in.
fn registry() -> HttpServer {
    let layer = vec![0; 1024];
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(&layer)]},
    });
    let config = config.to_string().into_bytes();
    let part = |media_type: &str, bytes: &[u8]| -> Value {
        json!({"mediaType": media_type, "digest": digest_of(bytes), "size": bytes.len()})
    };
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2, "mediaType": media_type,
        "config": part("application/vnd.oci.image.config.v1+json", &config),
        "layers": [part("application/vnd.oci.image.layer.v1.tar", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let expected = format!("Basic {}", BASE64_STANDARD.encode(format!("ann:{PASSWORD}")));
    let pages = [
        (format!("/v2/{IMAGE}/blobs/{}", digest_of(&layer)), "application/octet-stream", layer),
        (format!("/v2/{IMAGE}/blobs/{}", digest_of(&config)), "application/octet-stream", config),
        (format!("/v2/{IMAGE}/manifests/v1"), media_type, manifest),
        ("/v2/".to_owned(), "application/json", b"{}".to_vec()),
    ];
    let serve = move |request: &Request| {
        if request.header("authorization") != Some(expected.as_str()) {
            return Answer::status(401).header("www-authenticate", "Basic realm=\"registry\"");
        }
        let found = pages.iter().find(|(path, _, _)| path == request.path());
        found.map_or_else(|| Answer::status(404), |(_, kind, bytes)| Answer::bytes(kind, bytes.clone()))
    };
    HttpServer::builder().otherwise(serve).start(&Ca::new("demo"))
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    format!("sha256:{}", digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
