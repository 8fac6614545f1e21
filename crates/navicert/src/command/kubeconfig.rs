//! `navicert kubeconfig view|check`.

mod batch;
mod check;
mod report;
mod view;

use std::path::Path;

use navicert_client::kubeconfig::{
    Effective, KubeconfigSources, MergedKubeconfig, OsFileSystem, Overrides, load,
};

use crate::args::{ConnectionArgs, KubeconfigVerb};
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
        KubeconfigVerb::View(args) if args.jsonl => batch::run(args.profile, output),
        KubeconfigVerb::View(args) => view::run(&args, environment, output),
        KubeconfigVerb::Check(args) => check::run(&args, environment, output),
    }
}

/// Locates, loads and merges the kubeconfig files; prints every error if a file cannot be loaded.
pub(crate) fn merged(
    connection: &ConnectionArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<MergedKubeconfig, Failure> {
    let sources = KubeconfigSources::locate(
        connection.kubeconfig.as_deref(),
        environment.kubeconfig.as_deref(),
        environment.home.as_deref(),
    );
    let loaded = load(&sources, &environment.current_dir, &OsFileSystem).map_err(|errors| {
        report::file_errors(&errors, output);
        Failure::AlreadyReported(Exit::BadInput)
    })?;
    if loaded.files.is_empty() && matches!(sources, KubeconfigSources::List(_)) {
        // C121
        let names: Vec<String> = loaded.missing.iter().map(|path| path.display().to_string()).collect();
        output.warning(&format!("Config not found: {}", names.join(", ")));
    }
    Ok(MergedKubeconfig::new(loaded))
}

/// Selects the cluster and user by command line and environment; prints every error if the selection fails.
pub(crate) fn selected(
    connection: &ConnectionArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Effective, Failure> {
    let merged = merged(connection, environment, output)?;
    merged.select(&connection.overrides(&environment.current_dir), &OsFileSystem).map_err(|problems| {
        for problem in &problems {
            let (hint, location) = (problem.way_out(), merged.location_of_problem(problem));
            report::Finding { fatal: true, message: problem.to_string(), hint, location }.print(output);
        }
        Failure::AlreadyReported(Exit::BadInput)
    })
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
