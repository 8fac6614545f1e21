//! metav1.Time and metav1.Duration, parsed and formatted exactly as Go does.

mod duration;
mod instant;

pub use duration::{Duration, DurationError};
pub use instant::{Time, TimeError};
