//! Connections: the HTTP server that records and misbehaves, clients, raw bytes, and load and attacks on a server.
//!
//! Nothing here knows Kubernetes or OpenID Connect; [`crate::k8s`] and [`crate::services`] are built on it.

pub mod answer;
mod background;
pub mod bare_server;
pub mod connect_proxy;
pub mod connection_flood;
pub mod gate;
pub mod h2load;
pub mod http_client;
pub mod http_server;
pub mod load;
pub mod raw;
mod spdy;
pub mod tunnel;
pub mod victim;
pub mod watch;
