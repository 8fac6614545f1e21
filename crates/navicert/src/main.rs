//! The `navicert` binary: reads arguments and environment, calls the libraries, prints, exits.
fn main() {}
