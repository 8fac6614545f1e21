//! Reports: what a server would run with, where it listens, and how a request is interpreted, as values that serialize to the
//! JSON of `-o json` and print as text.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use navicert_authn::config::AuthnReloader;
use navicert_types::report::string_member;
use serde::Serialize;
use serde_json::Value;

use crate::confinement::ConfinementPlan;
use crate::memory::{EffectiveLimits, MemorySource};
use crate::request_info::{RequestInfo, RequestInfoError};

/// The result of `serve --check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServeCheckReport {
    /// `true`: the files of a server can be used. If not, the result is an error.
    pub valid: bool,
    /// The URLs of the configured issuers.
    pub issuers: Vec<String>,
    /// The limits, if a server is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsReport>,
    /// The confinement, if a server is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementSummary>,
}

/// The limits of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LimitsReport {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of requests that wait for a response.
    pub requests: usize,
    /// Maximum size of all unfinished requests together.
    pub unfinished_bytes: usize,
    /// The memory that the limits are derived from; `null` if it is unknown.
    pub memory_bytes: Option<u64>,
    /// What limits that memory.
    pub memory_source: Option<MemorySource>,
}

/// What a server is confined to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfinementSummary {
    /// No gain of privileges, in words.
    pub no_new_privileges: String,
    /// Confinement of files, in words.
    pub landlock: String,
    /// Confinement of system calls, in words.
    pub seccomp: String,
    /// The directories and files that the server may read.
    pub read: Vec<String>,
    /// The directories and files that the server may write.
    pub write: Vec<String>,
    /// Whether the paths are enforced.
    #[serde(skip)]
    pub confines_files: bool,
}

/// Where a server listens: the line that `serve` prints when it has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerStarted {
    /// The server: `webhook` or `proxy`.
    pub server: &'static str,
    /// Its address.
    pub listen: String,
    /// The address of probes and metrics.
    pub health: Option<String>,
}

/// The result of `gateway`, printed when it has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GatewayReport {
    /// The path of the kubeconfig for commands.
    pub kubeconfig: String,
    /// The URL of the gateway.
    pub server: String,
    /// Whether requests that change anything are rejected.
    pub read_only: bool,
}

/// How kube-apiserver interprets a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RequestInfoReport {
    /// The request can be interpreted.
    Accepted(Box<RequestAttributes>),
    /// The request cannot be interpreted.
    Rejected {
        /// `false`.
        ok: bool,
        /// Why.
        error: String,
    },
}

/// The attributes of a request. Those of a resource are empty if it is for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestAttributes {
    /// `true`.
    pub ok: bool,
    /// The path.
    pub path: String,
    /// The verb.
    pub verb: String,
    /// `api` or `apis`.
    pub api_prefix: String,
    /// Whether the request is for a resource.
    pub is_resource_request: bool,
    /// The API group.
    pub api_group: String,
    /// The API version.
    pub api_version: String,
    /// The namespace.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The name of the object.
    pub name: String,
    /// The segments from the resource on.
    pub parts: Vec<String>,
    /// The field selector.
    pub field_selector: String,
    /// The label selector.
    pub label_selector: String,
}

impl ServeCheckReport {
    /// The report of a valid configuration, with the limits and confinement of a server if it is known which one.
    pub fn new(reloader: &AuthnReloader, server: Option<(EffectiveLimits, &ConfinementPlan)>) -> Self {
        ServeCheckReport {
            valid: true,
            issuers: reloader.authenticator().health().into_iter().map(|(url, _)| url).collect(),
            limits: server.as_ref().map(|(limits, _)| limits.into()),
            confinement: server.map(|(_, plan)| plan.into()),
        }
    }
}

impl From<&EffectiveLimits> for LimitsReport {
    fn from(effective: &EffectiveLimits) -> Self {
        let EffectiveLimits { limits, memory } = effective;
        LimitsReport {
            connections: limits.connections,
            requests: limits.requests,
            unfinished_bytes: limits.unfinished_bytes,
            memory_bytes: memory.map(|memory| memory.bytes),
            memory_source: memory.map(|memory| memory.source),
        }
    }
}

impl From<&ConfinementPlan> for ConfinementSummary {
    fn from(plan: &ConfinementPlan) -> Self {
        fn listed<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<String> {
            paths.map(|path| path.display().to_string()).collect()
        }
        let report = plan.preview();
        ConfinementSummary {
            no_new_privileges: report.no_new_privileges.to_string(),
            landlock: report.landlock.to_string(),
            seccomp: report.seccomp.to_string(),
            read: listed(plan.files.readable()),
            write: listed(plan.files.appendable().chain(plan.files.replaceable())),
            confines_files: report.confines_files(),
        }
    }
}

impl ServerStarted {
    pub(crate) fn new(server: &'static str, listen: SocketAddr, health: Option<SocketAddr>) -> Self {
        ServerStarted {
            server,
            listen: listen.to_string(),
            health: health.map(|address| address.to_string()),
        }
    }
}

impl From<&RequestInfo<'_>> for RequestAttributes {
    fn from(info: &RequestInfo<'_>) -> Self {
        let attributes = RequestAttributes {
            ok: true,
            path: info.path().to_owned(),
            verb: info.verb().into_owned(),
            api_prefix: info.api_prefix().to_owned(),
            ..RequestAttributes::default()
        };
        let Some(resource) = info.resource() else { return attributes };
        RequestAttributes {
            is_resource_request: true,
            api_group: resource.group().to_owned(),
            api_version: resource.version().to_owned(),
            namespace: resource.namespace().to_owned(),
            resource: resource.resource().to_owned(),
            subresource: resource.subresource().to_owned(),
            name: resource.name().to_owned(),
            parts: resource.parts().map(ToOwned::to_owned).collect(),
            field_selector: resource.field_selector().to_owned(),
            label_selector: resource.label_selector().to_owned(),
            ..attributes
        }
    }
}

/// Interprets one line of `request-info --jsonl`: `{"method", "target"}`.
///
/// # Errors
/// The line is not an input of this kind.
pub fn request_info_line(request: &Value) -> Result<RequestInfoReport, String> {
    let (method, target) = (string_member(request, "method")?, string_member(request, "target")?);
    if !target.starts_with('/') {
        return Err("`target` must begin with `/`".to_owned());
    }
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    match RequestInfo::read(method, path, query) {
        Ok(info) => Ok(RequestInfoReport::Accepted(Box::new((&info).into()))),
        Err(RequestInfoError::NotUtf8) => Err(RequestInfoError::NotUtf8.to_string()),
        Err(error) => Ok(RequestInfoReport::Rejected { ok: false, error: error.to_string() }),
    }
}

impl fmt::Display for ServeCheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.issuers.len() {
            1 => writeln!(f, "ok: 1 issuer")?,
            count => writeln!(f, "ok: {count} issuers")?,
        }
        if let Some(limits) = &self.limits {
            write!(f, "{limits}")?;
        }
        self.confinement.as_ref().map_or(Ok(()), |confinement| write!(f, "{confinement}"))
    }
}

impl fmt::Display for LimitsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match (self.memory_bytes, self.memory_source) {
            (Some(bytes), Some(source)) => format!("memory {} MiB, {}", bytes >> 20, source.name()),
            _ => "memory unknown".to_owned(),
        };
        writeln!(
            f,
            "limits: {} connections, {} requests, {} KiB of unfinished requests ({memory})",
            self.connections,
            self.requests,
            self.unfinished_bytes >> 10,
        )
    }
}

/// Paths are listed only if they are enforced.
impl fmt::Display for ConfinementSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfinementSummary { no_new_privileges, landlock, seccomp, .. } = self;
        writeln!(f, "confinement: no_new_privs {no_new_privileges}; landlock {landlock}; seccomp {seccomp}")?;
        if self.confines_files {
            for (what, paths) in [("read", &self.read), ("write", &self.write)] {
                paths.iter().try_for_each(|path| writeln!(f, "  {what}: {path}"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ServerStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listening on {}", self.server, self.listen)?;
        match &self.health {
            Some(address) => writeln!(f, ", health on {address}"),
            None => writeln!(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lists_paths_only_if_they_are_enforced() {
        let summary = |confines_files| ConfinementSummary {
            no_new_privileges: "on".to_owned(),
            landlock: "off: x".to_owned(),
            seccomp: "on".to_owned(),
            read: vec!["/a".to_owned()],
            write: vec!["/b".to_owned()],
            confines_files,
        };
        let head = "confinement: no_new_privs on; landlock off: x; seccomp on\n";
        assert_eq!(summary(false).to_string(), head);
        assert_eq!(summary(true).to_string(), format!("{head}  read: /a\n  write: /b\n"));
    }

    #[test]
    fn memory_source_is_serialized_by_its_name() {
        for source in [MemorySource::ControlGroup, MemorySource::Machine] {
            assert_eq!(serde_json::to_value(source).unwrap(), source.name());
        }
    }
}
