//! Kubernetes around a test: a fake API server, a real control plane, kubeconfigs, an exec credential plugin, a kubelet's volume,
//! and the recorded decisions.

pub mod api_server;
pub mod cluster;
pub mod fake_exec_plugin;
pub mod kubeconfig;
pub mod projected_volume;
pub mod vectors;
