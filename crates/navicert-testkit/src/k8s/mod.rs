//! Kubernetes around a test: a fake API server, a real control plane, an exec credential plugin, a kubelet's volume,
//! and the recorded decisions.

pub mod api_server;
pub mod cluster;
pub mod fake_exec_plugin;
pub mod projected_volume;
pub mod vectors;
