//! Runs the recorded decisions about expressions against navicert: those in `vectors/`, and the published CEL conformance
//! suite where `make peers` has written it or `NAVICERT_SHARED` names it.

pub mod authn;
pub mod cel_lines;
pub mod generated;
pub mod report;
pub mod skips;
pub mod suite;
pub mod values;
