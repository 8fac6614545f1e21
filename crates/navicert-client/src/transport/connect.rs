//! From a selected context to a transport: which credentials, which server, which way. Nothing is run or opened.

use std::sync::Arc;

use super::Transport;
use super::error::BuildError;
use super::settings::{Around, Environment, Settings};
use super::timer::TokioTimer;
use crate::credential::{SharedFiles, choose};
use crate::exec;
use crate::kubeconfig::{Disk, Effective};

/// A transport for the cluster and user that were selected, with this machine's files and the runtime's timer.
///
/// ```no_run
/// # fn example(environment: navicert_plugin::Environment) -> Result<(), Box<dyn std::error::Error>> {
/// use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
/// use navicert_client::{exec, transport};
/// use std::path::Path;
///
/// let sources = Sources::locate(Some(Path::new("/etc/kubeconfig")), None, None);
/// let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), Path::new("/"), &Disk)?;
/// let transport = transport::connect(
///     &effective,
///     &exec::Settings::default(),
///     &exec::Surroundings::new(environment),
///     &transport::Environment::default(),
/// )?;
/// # let _ = transport; Ok(()) }
/// ```
///
/// # Errors
/// [`BuildError`]: the credentials or the settings cannot be used.
pub fn connect(
    effective: &Effective,
    exec: &exec::Settings,
    surroundings: &exec::Surroundings,
    environment: &Environment,
) -> Result<Transport, BuildError> {
    connect_with(effective, exec, surroundings, environment, |settings| settings)
}

/// The same with other settings than the kubeconfig's.
///
/// # Errors
/// [`BuildError`]: the credentials or the settings cannot be used.
pub fn connect_with(
    effective: &Effective,
    exec: &exec::Settings,
    surroundings: &exec::Surroundings,
    environment: &Environment,
    change: impl FnOnce(Settings) -> Settings,
) -> Result<Transport, BuildError> {
    let files: SharedFiles = Arc::new(Disk);
    let around = Around {
        clock: Arc::clone(&surroundings.clock),
        timer: Arc::new(TokioTimer),
        files: Arc::clone(&files),
        recorder: Arc::clone(&surroundings.recorder),
    };
    let settings = change(Settings::of(effective, environment)?);
    let source = choose(effective, &files, exec, surroundings)?;
    Transport::new(settings, source, around)
}
