//! `navicert serve proxy` as a program: an issuer, an API server that records, and real clients between them.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests")]

#[path = "serve_proxy/confinement.rs"]
mod confinement;
#[path = "serve_proxy/faults.rs"]
mod faults;
#[path = "serve_proxy/floods.rs"]
mod floods;
#[path = "serve_proxy/kubectl.rs"]
mod kubectl;
#[path = "serve_proxy/libraries.rs"]
mod libraries;
#[path = "serve_proxy/memory.rs"]
mod memory;
#[path = "serve_proxy/setup.rs"]
mod setup;
#[path = "serve_proxy/start.rs"]
mod start;
#[path = "serve_proxy/victims.rs"]
mod victims;
