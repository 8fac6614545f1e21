//! The runtime of requests. The path of a cached token needs none.

use crate::error::LoginError;

/// A runtime on this thread. Made only where something waits for the network.
///
/// # Errors
/// The system provides no resources for it.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, LoginError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| LoginError::Internal(format!("failed to start a runtime: {error}")))
}
