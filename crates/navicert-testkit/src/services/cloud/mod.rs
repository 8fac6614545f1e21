//! The services of three clouds that hand out registry passwords, as far as their formats are published: each checks
//! every header and field it is sent, and misbehaves on cue through [`HttpServer::answer`].
//!
//! ```text
//! Amazon  ECR, ECR Public, STS, EC2 metadata, container agent     signatures are computed again, independently
//! Google  metadata server, security token service
//! Azure   metadata server, directory, registry, custom cloud
//! ```

mod amazon;
mod azure;
mod google;
mod request_violations;

pub use amazon::Amazon;
pub use azure::Azure;
pub use google::Google;
pub use request_violations::RequestViolations;

#[cfg(doc)]
use crate::net::http_server::HttpServer;
