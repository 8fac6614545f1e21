//! `navicert kubeconfig view|check`.

mod check;
mod view;

use std::path::Path;

use navicert_client::kubeconfig::Overrides;
use navicert_client::report::kubeconfig_batch::view_line;
use navicert_types::kubeconfig::Kubeconfig;

use super::batch::process_lines;
use crate::args::{ConnectionArgs, KubeconfigVerb, Profile};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Dispatches to the verb.
pub(crate) fn run(
    verb: KubeconfigVerb,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match verb {
        KubeconfigVerb::View(args) if args.jsonl => {
            let profile = Some(args.profile.unwrap_or(Profile::Kube));
            let redact = |config: &Kubeconfig| view::redacted(config, profile);
            process_lines(|line| view_line(line, redact), output)
        }
        KubeconfigVerb::View(args) => view::run(&args, environment, output),
        KubeconfigVerb::Check(args) => check::run(&args, environment, output),
    }
}

impl ConnectionArgs {
    /// The overrides of this command line. Paths are relative to the working directory.
    // C132
    pub(crate) fn overrides(&self, current_dir: &Path) -> Overrides {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let path = |value: &Option<String>| {
            let absolute = |path: &String| current_dir.join(path).to_string_lossy().into_owned();
            value.as_ref().filter(|path| !path.is_empty()).map(absolute).unwrap_or_default()
        };
        let mut overrides = Overrides {
            context: text(&self.context),
            cluster: text(&self.cluster),
            user: text(&self.user),
            namespace: text(&self.namespace),
            server: text(&self.server),
            tls_server_name: text(&self.tls_server_name),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            certificate_authority: path(&self.certificate_authority),
            proxy_url: text(&self.proxy_url),
            disable_compression: self.disable_compression,
            client_certificate: path(&self.client_certificate),
            client_key: path(&self.client_key),
            impersonate: text(&self.impersonate),
            impersonate_uid: text(&self.impersonate_uid),
            impersonate_groups: self.impersonate_groups.clone(),
            ..Overrides::default()
        };
        for (key, value) in &self.impersonate_extra {
            overrides.impersonate_user_extra.entry(key.clone()).or_default().push(value.clone());
        }
        overrides
    }
}
