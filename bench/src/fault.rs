//! Why something could not be measured.

/// Any error; the program prints it and ends.
pub(crate) type Fault = Box<dyn std::error::Error>;
