//! One file per verb. A verb maps arguments to a library call and the result to output; it holds no other logic.

pub(crate) mod authn;
mod batch;
pub(crate) mod cel;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod exec_plugin;
pub(crate) mod gateway;
pub(crate) mod help;
pub(crate) mod image;
pub(crate) mod kubeconfig;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod request_info;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod signer;
pub(crate) mod stop;
pub(crate) mod tls_verify;
pub(crate) mod upstream_failure;
pub(crate) mod version;
pub(crate) mod whoami;
pub(crate) mod write_files;
