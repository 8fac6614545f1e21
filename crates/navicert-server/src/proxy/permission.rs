//! Permissions in the API server's terms: a verb, and the resource or path it applies to. The self-check, the RBAC
//! rules that it prints and the authorization of `kubectl --as` share these types.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::request_info::RequestInfo;

/// API group of the identity's parts; in legacy impersonation only of UIDs and extra attributes.
pub(crate) const AUTHENTICATION: &str = "authentication.k8s.io";

/// A permission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permission {
    /// Verb.
    pub verb: PermissionVerb,
    /// What it applies to.
    pub target: PermissionTarget,
}

/// A mode of constrained impersonation (KEP-5284).
// S237
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstrainedMode {
    /// A service account acts as the node that it runs on.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Every other user.
    UserInfo,
}

impl ConstrainedMode {
    /// The mode's name in verbs.
    pub fn name(self) -> &'static str {
        match self {
            ConstrainedMode::AssociatedNode => "associated-node",
            ConstrainedMode::ArbitraryNode => "arbitrary-node",
            ConstrainedMode::ServiceAccount => "serviceaccount",
            ConstrainedMode::UserInfo => "user-info",
        }
    }
}

/// Verb of a permission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PermissionVerb {
    /// `create`
    Create,
    /// `impersonate`: legacy impersonation, for any request.
    Impersonate,
    /// `impersonate:<mode>`: a part of an identity. Needs `ImpersonateOn` besides.
    ImpersonateAs(ConstrainedMode),
    /// `impersonate-on:<mode>:<verb>`: a request while impersonating.
    ImpersonateOn(ConstrainedMode, Cow<'static, str>),
    /// Any other verb, as the API server names it.
    Other(String),
}

impl fmt::Display for PermissionVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PermissionVerb::Create => f.write_str("create"),
            PermissionVerb::Impersonate => f.write_str("impersonate"),
            PermissionVerb::ImpersonateAs(mode) => write!(f, "impersonate:{}", mode.name()),
            PermissionVerb::ImpersonateOn(mode, verb) => write!(f, "impersonate-on:{}:{verb}", mode.name()),
            PermissionVerb::Other(verb) => f.write_str(verb),
        }
    }
}

/// What a permission applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PermissionTarget {
    /// A resource.
    Resource(ResourceTarget),
    /// A path that is no resource.
    Path(String),
}

/// A resource, or one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceTarget {
    /// API group; empty for the core group, `*` for all.
    pub group: String,
    /// API version; empty for any.
    pub version: String,
    /// Resource; `*` for all, with their subresources.
    pub resource: String,
    /// Subresource, if any.
    pub subresource: String,
    /// Namespace; empty for all namespaces or cluster-scoped resources.
    pub namespace: String,
    /// Name; empty for any.
    pub name: String,
    /// Field selector as sent, if any.
    pub field_selector: String,
    /// Label selector as sent, if any.
    pub label_selector: String,
}

impl ResourceTarget {
    /// All objects of a resource.
    pub fn new(group: &str, resource: &str) -> Self {
        ResourceTarget { group: group.into(), resource: resource.into(), ..ResourceTarget::default() }
    }

    /// The resource as rules spell it, with the subresource.
    pub fn path(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

impl Permission {
    /// Permission to create objects of a resource.
    pub fn create(group: &str, resource: &str) -> Self {
        Permission::new(PermissionVerb::Create, group, resource)
    }

    /// Permission for all objects of a resource.
    pub fn new(verb: PermissionVerb, group: &str, resource: &str) -> Self {
        Permission { verb, target: PermissionTarget::Resource(ResourceTarget::new(group, resource)) }
    }

    /// Permission for a request itself, in another verb.
    pub(super) fn on_request(mode: ConstrainedMode, request: &RequestInfo<'_>) -> Self {
        let target = match request.resource() {
            None => PermissionTarget::Path(request.path().to_owned()),
            Some(resource) => PermissionTarget::Resource(ResourceTarget {
                group: resource.group().to_owned(),
                version: resource.version().to_owned(),
                resource: resource.resource().to_owned(),
                subresource: resource.subresource().to_owned(),
                namespace: resource.namespace().to_owned(),
                name: resource.name().to_owned(),
                field_selector: resource.field_selector().to_owned(),
                label_selector: resource.label_selector().to_owned(),
            }),
        };
        Permission { verb: PermissionVerb::ImpersonateOn(mode, request.verb()), target }
    }

    /// Sets the subresource.
    #[must_use]
    pub(crate) fn with_subresource(self, subresource: &str) -> Self {
        self.with(|target| subresource.clone_into(&mut target.subresource))
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        self.with(|target| name.clone_into(&mut target.name))
    }

    /// The name; empty for any, and for paths.
    pub fn name(&self) -> &str {
        match &self.target {
            PermissionTarget::Resource(target) => &target.name,
            PermissionTarget::Path(_) => "",
        }
    }

    /// Sets the namespace.
    #[must_use]
    pub(crate) fn with_namespace(self, namespace: &str) -> Self {
        self.with(|target| namespace.clone_into(&mut target.namespace))
    }

    fn with(mut self, change: impl FnOnce(&mut ResourceTarget)) -> Self {
        if let PermissionTarget::Resource(target) = &mut self.target {
            change(target);
        }
        self
    }

    /// Field and value of an access review that asks for the permission.
    pub(super) fn review_attributes(&self) -> (&'static str, Value) {
        let verb = self.verb.to_string();
        match &self.target {
            PermissionTarget::Path(path) => ("nonResourceAttributes", json!({"verb": verb, "path": path})),
            PermissionTarget::Resource(target) => ("resourceAttributes", target.attributes(&verb)),
        }
    }
}

impl ResourceTarget {
    fn attributes(&self, verb: &str) -> Value {
        let parts = [
            ("verb", verb),
            ("group", &self.group),
            ("version", &self.version),
            ("resource", &self.resource),
            ("subresource", &self.subresource),
            ("namespace", &self.namespace),
            ("name", &self.name),
        ];
        let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
        let mut attributes: Map<String, Value> =
            parts.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        // The API server parses them as it does those of a request; versions before 1.31 ignore both fields.
        for (name, selector) in
            [("fieldSelector", &self.field_selector), ("labelSelector", &self.label_selector)]
        {
            if !selector.is_empty() {
                attributes.insert(name.to_owned(), json!({"rawSelector": selector}));
            }
        }
        Value::Object(attributes)
    }
}

/// As the API server names it in a denial, after `User "ann" cannot `.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = &self.verb;
        match &self.target {
            PermissionTarget::Path(path) => write!(f, "{verb} path \"{path}\""),
            PermissionTarget::Resource(target) => {
                write!(f, "{verb} resource \"{}\" in API group \"{}\" ", target.path(), target.group)?;
                match target.namespace.as_str() {
                    "" => f.write_str("at the cluster scope"),
                    namespace => write!(f, "in the namespace \"{namespace}\""),
                }
            }
        }
    }
}
