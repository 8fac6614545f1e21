//! `navicert signer serve`: one login for every client of this user.

use std::sync::Arc;
use std::thread;

use navicert_signer::pkcs11::Pkcs11Ring;
use navicert_signer::program::{SOCKET_VARIABLE, Surroundings};
use navicert_signer::remote::{KeyRing, Server};

use super::{failure, selection};
use crate::args::signer::ServeArgs;
use crate::command::stop::Stop;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Serves until it is stopped.
pub(super) fn run(args: &ServeArgs, around: &Surroundings, output: &mut Output) -> Result<Exit, Failure> {
    let module = around.default_module();
    let selections =
        args.uri.iter().map(|uri| selection(uri, module.as_deref())).collect::<Result<Vec<_>, _>>()?;
    let socket = args.socket.clone().or_else(|| around.socket()).ok_or_else(|| Failure::Sentence {
        exit: Exit::Usage,
        text: format!(
            "there is no runtime folder for the socket: name one with `--socket` or `{SOCKET_VARIABLE}`"
        ),
    })?;
    let count = selections.len();
    if let Err(error) = navicert_image::daemon::forbid_core_dumps() {
        output.warning(&format!("core dumps of this process cannot be forbidden: {error}"));
    }
    let ring =
        Pkcs11Ring::serving(selections, module, around.choose_ask()).map_err(|error| failure(&error))?;
    let server = Arc::new(Server::bind(&socket).map_err(|error| failure(&error))?);
    let stop =
        Stop::new().map_err(|error| Failure::bad_input(format!("cannot wait for signals: {error}")))?;
    let keys = if count == 1 { "key" } else { "keys" };
    output.text(&format!("signing with {count} {keys} at {}\n", socket.display()))?;
    let (ring, serving): (Arc<dyn KeyRing>, _) = (Arc::new(ring), Arc::clone(&server));
    thread::Builder::new().name("signer".to_owned()).spawn(move || serving.serve(&ring))?;
    stop.wait();
    server.close();
    Ok(Exit::Done)
}
