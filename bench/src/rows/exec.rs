//! An exec plugin: a run, the least that starting it can cost, and what a request pays for a credential that is there.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use navicert_client::ClientContext;
use navicert_client::credential::{CredentialSource, RequestOrigin};
use navicert_client::exec::{Authenticator, AuthenticatorRegistry, ExecSettings};
use navicert_client::transport::attach_cached;
use navicert_plugin::Environment;

use super::{Row, race_plugin};
use crate::client::plugin_config;
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

/// The same program started and read without anything else.
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
    let config = plugin_config(&race_plugin()?, "https://server.invalid")?;
    let plugin = config.exec_plugin().ok_or("a plugin is configured")?.clone();
    let environment: Environment = environment().into_iter().collect();
    let client_context =
        ClientContext { registry: AuthenticatorRegistry::new(), ..ClientContext::new(environment) };
    Ok(Authenticator::new(plugin, ExecSettings::default(), client_context))
}

/// The plugin inherits the environment of this process, as in the Go benchmark.
fn environment() -> Vec<(String, String)> {
    #[expect(clippy::disallowed_methods, reason = "this is a binary crate, and the variables go to a plugin")]
    let variables = std::env::vars();
    variables.collect()
}
