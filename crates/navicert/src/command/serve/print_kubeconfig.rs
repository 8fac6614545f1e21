//! `navicert serve webhook --print-kubeconfig`: the file for kube-apiserver's `--authentication-token-webhook-config-file`.

use std::fs;
use std::path::PathBuf;

use navicert_server::startup::ServerParts;
use navicert_types::decode::Base64;
use navicert_types::tree::yaml_quoted;

use super::usage_error;
use crate::args::serve::KubeconfigArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the kubeconfig. It holds no secret: keys and tokens are referenced by file name.
pub(super) fn run(args: &KubeconfigArgs, shared: &ServerParts, output: &mut Output) -> Result<Exit, Failure> {
    let path = &shared.servers.webhook.path;
    let server = match &args.server_url {
        Some(url) => with_path(url, path),
        None if shared.address().ip().is_unspecified() => {
            return Err(usage_error(
                "missing URL of the webhook: set --server-url to the address the API server connects to",
            ));
        }
        None => {
            let scheme = if shared.tls.is_some() { "https" } else { "http" };
            format!("{scheme}://{}{path}", shared.address())
        }
    };
    let mut cluster = format!("    server: {}\n", yaml_quoted(&server));
    if let Some(authority) = authority(args, shared)? {
        cluster += &format!("    certificate-authority-data: {}\n", Base64::encode(&authority));
    }
    let mut user = String::new();
    let files: [(&str, Option<&PathBuf>); 3] = [
        ("client-certificate", args.client_certificate.as_ref()),
        ("client-key", args.client_key.as_ref()),
        ("tokenFile", shared.servers.bearer_token_file.as_ref()),
    ];
    for (field, file) in files.into_iter().filter_map(|(field, file)| Some((field, file?))) {
        user += &format!("    {field}: {}\n", yaml_quoted(&file.display().to_string()));
    }
    let user = if user.is_empty() { "  user: {}\n".to_owned() } else { format!("  user:\n{user}") };
    output.text(&format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: navicert\n  cluster:\n{cluster}users:\n- name: kube-apiserver\n{user}\
         contexts:\n- name: webhook\n  context:\n    cluster: navicert\n    user: kube-apiserver\ncurrent-context: webhook\n"
    ))?;
    Ok(Exit::Done)
}

/// Adds the webhook's path to a URL without one.
fn with_path(url: &str, path: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let bare = after_scheme.trim_end_matches('/');
    if bare.contains('/') { url.to_owned() } else { format!("{}{path}", url.trim_end_matches('/')) }
}

fn authority(args: &KubeconfigArgs, shared: &ServerParts) -> Result<Option<Vec<u8>>, Failure> {
    let own = shared.servers.tls_cert_file.as_ref().filter(|_| shared.tls.is_some());
    let Some(path) = args.certificate_authority.as_ref().or(own) else { return Ok(None) };
    fs::read(path)
        .map(Some)
        .map_err(|error| Failure::bad_input(format!("failed to read `{}`: {error}", path.display())))
}
