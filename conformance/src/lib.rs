//! Runs recorded decisions of the reference implementations against navicert. Vectors are read, never copied:
//! the environment variable `NAVICERT_SHARED` says where they are, `../shared` beside the workspace by default.

pub mod authn;
pub mod cel_lines;
pub mod generated;
pub mod report;
pub mod shared;
pub mod skips;
pub mod suite;
pub mod values;
