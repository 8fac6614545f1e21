//! Creates a transport for a selected context: chooses credentials, server and proxy. Runs no plugin and opens no
//! connection.

use std::sync::Arc;

use super::Transport;
use super::error::BuildError;
use super::settings::{Around, TransportEnvironment, TransportSettings};
use super::timer::TokioTimer;
use crate::credential::{SharedFiles, choose};
use crate::exec;
use crate::kubeconfig::{Effective, OsFileSystem};

/// Creates a transport for the selected cluster and user, with the system's files and tokio's timer.
///
/// ```no_run
/// # fn example(environment: navicert_plugin::Environment) -> Result<(), Box<dyn std::error::Error>> {
/// use navicert_client::kubeconfig::{self, KubeconfigSources, OsFileSystem, Overrides};
/// use navicert_client::{exec, transport};
/// use std::path::Path;
///
/// let sources = KubeconfigSources::locate(Some(Path::new("/etc/kubeconfig")), None, None);
/// let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), Path::new("/"), &OsFileSystem)?;
/// let transport = transport::connect(
///     &effective,
///     &exec::ExecSettings::default(),
///     &exec::Surroundings::new(environment),
///     &transport::TransportEnvironment::default(),
/// )?;
/// # let _ = transport; Ok(()) }
/// ```
///
/// # Errors
/// [`BuildError`]: the credentials or the settings are invalid.
pub fn connect(
    effective: &Effective,
    exec: &exec::ExecSettings,
    surroundings: &exec::Surroundings,
    environment: &TransportEnvironment,
) -> Result<Transport, BuildError> {
    connect_with(effective, exec, surroundings, environment, |settings| settings)
}

/// Like [`connect`], with changes to the settings derived from the kubeconfig.
///
/// # Errors
/// [`BuildError`]: the credentials or the settings are invalid.
pub fn connect_with(
    effective: &Effective,
    exec: &exec::ExecSettings,
    surroundings: &exec::Surroundings,
    environment: &TransportEnvironment,
    change: impl FnOnce(TransportSettings) -> TransportSettings,
) -> Result<Transport, BuildError> {
    let files: SharedFiles = Arc::new(OsFileSystem);
    let around = Around {
        clock: Arc::clone(&surroundings.clock),
        timer: Arc::new(TokioTimer),
        files: Arc::clone(&files),
        recorder: Arc::clone(&surroundings.recorder),
    };
    let settings = change(TransportSettings::from_effective(effective, environment)?);
    let source = choose(effective, &files, exec, surroundings)?;
    Transport::new(settings, source, around)
}
