//! Time as it is on Kubernetes' wires: metav1.Time and metav1.Duration, read and written exactly as Go does.

mod duration;
mod instant;

pub use duration::{Duration, DurationError};
pub use instant::{Time, TimeError};
