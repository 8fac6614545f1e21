//! Demonstrates image credentials: a registry with a password, one provider, what a kubelet would do with it, and
//! then skopeo, or its stand-in, pulling through the helper.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use navicert_testkit::cli::sibling::DOCKER_HELPER;
use navicert_testkit::net::http_server::Request;
use navicert_testkit::{Answer, Ca, HttpClient, HttpServer, Program, wait};
use serde_json::{Value, json};

use super::{Demo, DemoError, KUBECONFIG, link, write};

const PASSWORD: &str = "this-is-a-password";
const IMAGE: &str = "team/app";

/// Runs the demonstration.
pub(super) fn run(demo: &Demo) -> Result<(), DemoError> {
    let ca = Ca::new("demo");
    let registry = registry(&ca);
    let host = registry.address().to_string();
    let address = registry.address().ip().to_string();
    let image = format!("{host}/{IMAGE}:v1");
    prepare(demo, &host, &address)?;

    demo.scene("Image credentials: one provider, and why a kubelet would ask it. Nothing secret is shown.")?;
    demo.show("cat providers.yaml", &Program::new("cat").arguments(["providers.yaml"]), 0)?;
    show!("$ export NAVICERT_IMAGE_CONFIG=providers.yaml NAVICERT_IMAGE_BIN_DIR=bin\n")?;
    demo.run(&["image", "explain", &image], 0)?;

    demo.scene("The same provider for everybody else: skopeo, podman and docker ask it through a helper.")?;
    demo.show("cat auth.json", &Program::new("cat").arguments(["auth.json"]), 0)?;
    let source = format!("docker://{image}");
    let words =
        ["copy", "--quiet", "--src-tls-verify=false", "--authfile", "auth.json", &source, "dir:pulled"];
    let line = format!("skopeo --insecure-policy {} && ls pulled", words.join(" "));
    if demo.tools.skopeo {
        let pull = Program::new("skopeo").arguments(["--insecure-policy"]).arguments(words);
        demo.show(&line, &pull, 0)?;
    } else {
        show!("$ {line}")?;
        Puller { demo, client: HttpClient::trusting(&ca), host: &host }.pull()?;
    }
    demo.show_output(&Program::new("ls").arguments(["pulled"]), 0)
}

/// The stand-in for skopeo: asks the helper for the password, and copies the image with it into the directory `pulled`.
struct Puller<'s> {
    demo: &'s Demo,
    client: HttpClient,
    host: &'s str,
}

impl Puller<'_> {
    fn pull(&self) -> Result<(), String> {
        let authorization = self.authorization()?;
        let dir = self.demo.dir.path().join("pulled");
        std::fs::create_dir(&dir).map_err(|error| format!("failed to create {}: {error}", dir.display()))?;
        let save = |name: &str, bytes: &[u8]| {
            std::fs::write(dir.join(name), bytes).map_err(|error| format!("failed to write {name}: {error}"))
        };
        let bytes = self.fetch("manifests/v1", &authorization)?;
        save("manifest.json", &bytes)?;
        let manifest: Value =
            serde_json::from_slice(&bytes).map_err(|error| format!("invalid manifest: {error}"))?;
        let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
        for part in manifest.get("config").into_iter().chain(layers) {
            let digest =
                part.get("digest").and_then(Value::as_str).ok_or("missing digest in the manifest")?;
            let bytes = self.fetch(&format!("blobs/{digest}"), &authorization)?;
            save(digest.trim_start_matches("sha256:"), &bytes)?;
        }
        Ok(())
    }

    /// The value of `Authorization`, from the helper's response.
    fn authorization(&self) -> Result<String, String> {
        let helper = Program::new(self.demo.dir.path().join("bin/docker-credential-navicert"));
        let outcome = self.demo.finish(KUBECONFIG, &helper.arguments(["get"]).stdin(self.host))?;
        let response: Value = serde_json::from_slice(&outcome.stdout)
            .map_err(|error| format!("invalid response of docker-credential-navicert: {error}"))?;
        let field = |name: &str| response.get(name).and_then(Value::as_str).unwrap_or_default();
        Ok(format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", field("Username"), field("Secret")))))
    }

    fn fetch(&self, path: &str, authorization: &str) -> Result<bytes::Bytes, String> {
        let request = http::Request::get(format!("https://{}/v2/{IMAGE}/{path}", self.host))
            .header("authorization", authorization)
            .body(bytes::Bytes::new())
            .map_err(|error| error.to_string())?;
        let reply = wait::blocking(async { self.client.send(request).await })
            .map_err(|error| format!("failed to fetch {path}: {error}"))?;
        if reply.status.is_success() {
            Ok(reply.body)
        } else {
            Err(format!("failed to fetch {path}: {}", reply.status))
        }
    }
}

/// Writes the configuration, the provider, and skopeo's `auth.json`.
fn prepare(demo: &Demo, host: &str, address: &str) -> Result<(), String> {
    let dir = demo.dir.path();
    let config = format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: registry-login\n  \
         matchImages: ['{address}', '{host}']\n  defaultCacheDuration: 10m\n  \
         apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
    );
    write(&dir.join("providers.yaml"), &config)?;
    let response = json!({
        "kind": "CredentialProviderResponse",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "cacheKeyType": "Registry",
        "auth": {host: {"username": "ann", "password": PASSWORD}},
    });
    let helpers = json!({"credHelpers": {host: "navicert"}});
    write(&dir.join("auth.json"), &format!("{helpers}\n"))?;
    let bin = dir.join("bin");
    let provider = bin.join("registry-login");
    write(&provider, &format!("#!/bin/sh\ncat >/dev/null\necho '{response}'\n"))?;
    std::fs::set_permissions(&provider, Permissions::from_mode(0o755))
        .map_err(|error| format!("failed to make {} executable: {error}", provider.display()))?;
    link(&DOCKER_HELPER.find()?, &bin.join(DOCKER_HELPER.name()))
}

/// A registry with one image of one empty layer, which only ann may read.
fn registry(ca: &Ca) -> HttpServer {
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
    HttpServer::builder().otherwise(serve).start(ca)
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    format!("sha256:{}", digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
