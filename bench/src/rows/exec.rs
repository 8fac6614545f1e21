//! An exec plugin: a run, the least that starting it can cost, and what a request pays for a credential that is there.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use navicert_client::credential::{CredentialSource, RequestOrigin};
use navicert_client::exec::{Authenticator, AuthenticatorRegistry, ExecSettings, Plugin, Surroundings};
use navicert_client::kubeconfig::{Effective, OsFileSystem};
use navicert_client::transport::attach_cached;
use navicert_plugin::Environment;
use navicert_types::kubeconfig::{AuthInfo, Cluster, ExecConfig};

use super::{Row, race_plugin};
use crate::plugin::bare::BareProgram;
use crate::race::{Contestant, Fault};

pub(super) const ROWS: [Row; 3] = [("exec-run", run), ("exec-spawn", spawn), ("exec-cached", cached)];

/// From the request to the decoded credential.
fn run() -> Result<Contestant, Fault> {
    let authenticator = authenticator()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(Box::new(move || {
        runtime.block_on(authenticator.refresh())?;
        Ok(())
    }))
}

/// The same program started and read without anything around it.
fn spawn() -> Result<Contestant, Fault> {
    let variables = environment().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let program = BareProgram::new(&race_plugin()?.to_string_lossy(), variables)?;
    Ok(Box::new(move || match program.run()? {
        (1.., 0) => Ok(()),
        (bytes, status) => Err(format!("it printed {bytes} bytes and ended with status {status}").into()),
    }))
}

/// A request that has no `Authorization` gets one.
fn cached() -> Result<Contestant, Fault> {
    let authenticator = authenticator()?;
    authenticator.get_blocking(RequestOrigin::Foreground)?;
    let mut headers = HeaderMap::with_capacity(8);
    Ok(Box::new(move || {
        headers.remove(AUTHORIZATION);
        let source: &dyn CredentialSource = &authenticator;
        attach_cached(source, &mut headers).map(drop).ok_or_else(|| "nothing is cached".into())
    }))
}

fn authenticator() -> Result<Authenticator, Fault> {
    let exec = ExecConfig {
        command: race_plugin()?.to_string_lossy().into_owned(),
        api_version: "client.authentication.k8s.io/v1".into(),
        interactive_mode: "Never".into(),
        ..ExecConfig::default()
    };
    let effective = Effective {
        context: None,
        context_exists: false,
        namespace: String::new(),
        cluster_name: String::new(),
        cluster_exists: true,
        cluster: Cluster { server: "https://server.invalid".into(), ..Cluster::default() },
        user_name: String::new(),
        user_exists: true,
        user: AuthInfo { exec: Some(exec), ..AuthInfo::default() },
    };
    let plugin = Plugin::from_effective(&effective, &OsFileSystem)?.ok_or("a plugin is configured")?;
    let environment: Environment = environment().into_iter().collect();
    let around = Surroundings { registry: AuthenticatorRegistry::new(), ..Surroundings::new(environment) };
    Ok(Authenticator::new(plugin, ExecSettings::default(), around))
}

/// The plugin inherits the environment of this process, as in the Go benchmark.
fn environment() -> Vec<(String, String)> {
    #[expect(clippy::disallowed_methods, reason = "this is a binary crate, and the variables go to a plugin")]
    let variables = std::env::vars();
    variables.collect()
}
