//! `navicert signer serve`: logs in once and signs for all clients of this user.

use std::sync::Arc;
use std::thread;

use navicert_io::process_memory::forbid_core_dumps;
use navicert_signer::pkcs11::Pkcs11KeyStore;
use navicert_signer::program::{SOCKET_VARIABLE, SignerEnvironment};
use navicert_signer::remote::{KeyStore, SignerServer};

use super::{failure, selection};
use crate::args::signer::ServeArgs;
use crate::command::stop::StopSignals;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Serves until SIGTERM or SIGINT.
pub(super) fn run(
    args: &ServeArgs,
    around: &SignerEnvironment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let module = around.default_module();
    let selections =
        args.uri.iter().map(|uri| selection(uri, module.as_deref())).collect::<Result<Vec<_>, _>>()?;
    let socket =
        args.socket.clone().map_or_else(|| around.new_socket(), Ok).map_err(|error| Failure::Message {
            exit: Exit::Usage,
            text: format!("no directory for the socket: {error}; or set `--socket` or `{SOCKET_VARIABLE}`"),
        })?;
    let count = selections.len();
    if let Err(error) = forbid_core_dumps() {
        output.warning(&format!("failed to disable core dumps: {error}"));
    }
    let ring = Pkcs11KeyStore::serving(selections, module, around.pin_provider_factory())
        .map_err(|error| failure(&error))?;
    let server = Arc::new(SignerServer::bind(&socket).map_err(|error| failure(&error))?);
    let stop = StopSignals::new()
        .map_err(|error| Failure::bad_input(format!("failed to install signal handlers: {error}")))?;
    let keys = if count == 1 { "key" } else { "keys" };
    output.text(&format!("signing with {count} {keys} at {}\n", socket.display()))?;
    let (ring, serving): (Arc<dyn KeyStore>, _) = (Arc::new(ring), Arc::clone(&server));
    thread::Builder::new().name("signer".to_owned()).spawn(move || serving.serve(&ring))?;
    stop.wait();
    server.close();
    Ok(Exit::Done)
}
