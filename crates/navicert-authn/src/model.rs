//! What the stages of a token's request path exchange: the request, its steps, the outcome and the user. This module uses no other
//! module of the crate, and every other one may use it.

mod algorithm;
pub mod outcome;
mod request;
mod step;
mod user;

pub(crate) use algorithm::SignatureScheme;
pub use algorithm::{JwsAlgorithm, JwsAlgorithmSet};
pub use request::{AuthnRequest, Interrupt};
pub use step::{AuthnStep, StepObserver, StepOutcome};
pub use user::{AuthenticatedUser, CREDENTIAL_ID};
