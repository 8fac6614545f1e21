//! Whether a user may impersonate an identity for a request, asked with `SubjectAccessReview` as the API server asks
//! itself: the constrained modes of Kubernetes 1.36 and later (KEP-5284), then `impersonate`.
// S233, S237, S239

use std::collections::BTreeMap;

use navicert_authn::config::is_domain_prefixed_path;
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::super::denial::Denial;
use super::super::permission::{AUTHENTICATION, ConstrainedMode, Permission, PermissionVerb};
use super::super::reviews::{AccessReviewError, subject_access_review};
use super::{ImpersonationError, is_subdomain, service_account};
use crate::request_info::RequestInfo;
use crate::user_ref::UserRef;

/// Maximum number of parts of an identity. A request takes at most one review per part and way, and four besides.
const MAX_IDENTITY_PARTS: usize = 64;
/// From this number of groups or extra values on, the API server tries a permission for all of them first.
const MANY_PARTS: usize = 4;

/// The modes in the API server's order.
const MODES: [ConstrainedMode; 4] = [
    ConstrainedMode::AssociatedNode,
    ConstrainedMode::ArbitraryNode,
    ConstrainedMode::ServiceAccount,
    ConstrainedMode::UserInfo,
];

/// The reviews of one request.
pub(super) struct Authorization<'a> {
    pub(super) user: UserRef<'a>,
    pub(super) target: &'a UserInfo,
    /// The request, if the API server has constrained impersonation and understands the request.
    pub(super) request: Option<&'a RequestInfo<'a>>,
    pub(super) upstream: &'a Transport,
}

impl Authorization<'_> {
    /// Tries the modes in order. Returns the constrained one that permits the request, `None` for the legacy way. If
    /// none does, the first error is the API server's too.
    pub(super) async fn run(&self) -> Result<Option<ConstrainedMode>, ImpersonationError> {
        if parts(self.target) > MAX_IDENTITY_PARTS {
            return Err(ImpersonationError::Malformed("too many groups and attributes to impersonate"));
        }
        let mut first_error = None;
        if let Some(request) = self.request {
            for mode in MODES.into_iter().filter(|mode| self.is_applicable(*mode)) {
                match self.constrained(mode, request).await {
                    Ok(()) => return Ok(Some(mode)),
                    Err(error) if error.is_denial() => first_error = first_error.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
        }
        match self.legacy().await {
            Ok(()) => Ok(None),
            Err(error) if error.is_denial() => Err(first_error.unwrap_or(error)),
            Err(error) => Err(error),
        }
    }

    /// Whether a mode can impersonate the identity at all.
    fn is_applicable(&self, mode: ConstrainedMode) -> bool {
        let UserInfo { username, uid, groups, extra } = self.target;
        let is_name_only = uid.is_empty() && groups.is_empty() && extra.is_empty();
        match mode {
            ConstrainedMode::AssociatedNode => {
                is_name_only && node(username).is_some_and(|node| self.runs_on(node))
            }
            ConstrainedMode::ArbitraryNode => is_name_only && node(username).is_some(),
            ConstrainedMode::ServiceAccount => is_name_only && service_account(username).is_some(),
            ConstrainedMode::UserInfo => node(username).is_none() && service_account(username).is_none(),
        }
    }

    /// Whether the user is a service account with a token that is bound to the node.
    fn runs_on(&self, node: &str) -> bool {
        let nodes = self.user.extra.get("authentication.kubernetes.io/node-name").map(Vec::as_slice);
        service_account(self.user.username).is_some() && nodes.is_some_and(|nodes| nodes == [node])
    }

    /// The permission for the request, then those for the parts of the identity.
    async fn constrained(
        &self,
        mode: ConstrainedMode,
        request: &RequestInfo<'_>,
    ) -> Result<(), ImpersonationError> {
        // S237: for an associated node the API server passes only the keys of the account's extra attributes.
        let keys = self.user.extra.keys().cloned().collect();
        let associated =
            BTreeMap::from([("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]);
        let user = match mode {
            ConstrainedMode::AssociatedNode => UserRef { extra: &associated, ..self.user },
            _ => self.user,
        };
        self.require(user, Permission::on_request(mode, request)).await?;
        let UserInfo { username, uid, groups, extra } = self.target;
        let verb = PermissionVerb::ImpersonateAs(mode);
        let new = |resource: &str| Permission::new(verb.clone(), AUTHENTICATION, resource);
        let name = match mode {
            ConstrainedMode::AssociatedNode => new("nodes").with_name("*"),
            ConstrainedMode::ArbitraryNode => new("nodes").with_name(node(username).unwrap_or_default()),
            ConstrainedMode::ServiceAccount => {
                let (namespace, name) = service_account(username).unwrap_or_default();
                new("serviceaccounts").with_namespace(namespace).with_name(name)
            }
            ConstrainedMode::UserInfo => new("users").with_name(username),
        };
        self.require(user, name).await?;
        if !uid.is_empty() {
            self.require(user, new("uids").with_name(uid)).await?;
        }
        if let Some((group, reason)) = invalid_group(groups) {
            return Err(self.denied(new("groups").with_name(group), Some(reason)));
        }
        let groups_permissions = groups.iter().map(|group| new("groups").with_name(group)).collect();
        self.require_all(user, groups_permissions, new("groups").with_name("*")).await?;
        if let Some(reason) = invalid_extra(extra) {
            return Err(self.denied(new("userextras"), Some(reason)));
        }
        let all = new("userextras").with_subresource("*").with_name("*");
        self.require_all(user, extra_permissions(extra, &new("userextras")), all).await
    }

    /// Permission for many parts at once or for each.
    async fn require_all(
        &self,
        user: UserRef<'_>,
        each: Vec<Permission>,
        all: Permission,
    ) -> Result<(), ImpersonationError> {
        if each.len() >= MANY_PARTS && self.require(user, all).await.is_ok() {
            return Ok(());
        }
        for permission in each {
            self.require(user, permission).await?;
        }
        Ok(())
    }

    /// The verb `impersonate` on each part, whatever the request is.
    async fn legacy(&self) -> Result<(), ImpersonationError> {
        for permission in legacy_permissions(UserRef::from(self.target)) {
            self.require(self.user, permission).await?;
        }
        Ok(())
    }

    async fn require(&self, user: UserRef<'_>, permission: Permission) -> Result<(), ImpersonationError> {
        match subject_access_review(self.upstream, user, &permission).await? {
            true => Ok(()),
            false => Err(self.denied(permission, None)),
        }
    }

    fn denied(&self, permission: Permission, reason: Option<&'static str>) -> ImpersonationError {
        let user = self.user.username.to_owned();
        let reason = reason.map(Into::into);
        ImpersonationError::Forbidden(Box::new(Denial { user, permission, reason }))
    }
}

impl ImpersonationError {
    /// Whether another mode may still permit the impersonation.
    fn is_denial(&self) -> bool {
        match self {
            ImpersonationError::Forbidden(_)
            | ImpersonationError::Review(AccessReviewError::Undetermined { .. }) => true,
            ImpersonationError::Malformed(_) | ImpersonationError::Review(_) => false,
        }
    }
}

/// The permissions of the legacy way for an identity.
// S233
pub(in super::super) fn legacy_permissions(target: UserRef<'_>) -> Vec<Permission> {
    let UserRef { username, uid, groups, extra } = target;
    let new = |group: &str, resource: &str| Permission::new(PermissionVerb::Impersonate, group, resource);
    let mut permissions = vec![match service_account(username) {
        Some((namespace, name)) => new("", "serviceaccounts").with_namespace(namespace).with_name(name),
        None => new("", "users").with_name(username),
    }];
    if !uid.is_empty() {
        permissions.push(new(AUTHENTICATION, "uids").with_name(uid));
    }
    permissions.extend(groups.iter().map(|group| new("", "groups").with_name(group)));
    permissions.extend(extra_permissions(extra, &new(AUTHENTICATION, "userextras")));
    permissions
}

fn extra_permissions(extra: &BTreeMap<String, Vec<String>>, one: &Permission) -> Vec<Permission> {
    let pairs = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    pairs.map(|(key, value)| one.clone().with_subresource(key).with_name(value)).collect()
}

fn parts(target: &UserInfo) -> usize {
    let extra: usize = target.extra.values().map(Vec::len).sum();
    2usize.saturating_add(target.groups.len()).saturating_add(extra)
}

/// A group that no constrained mode can impersonate.
fn invalid_group(groups: &[String]) -> Option<(&'static str, &'static str)> {
    let has = |name: &str| groups.iter().any(|group| group == name);
    if has("") {
        return Some(("", "impersonating the empty string group is not allowed"));
    }
    has("system:masters")
        .then_some(("system:masters", "impersonating the system:masters group is not allowed"))
}

/// Why extra attributes cannot be impersonated in a constrained mode.
fn invalid_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<&'static str> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed");
        }
        if !is_domain_prefixed_path(key) {
            return Some("impersonating an invalid key in extra is not allowed");
        }
        if *key != key.to_lowercase() {
            return Some("impersonating a non-lowercase key in extra is not allowed");
        }
        if values.is_empty() {
            return Some("impersonating empty values in extra is not allowed");
        }
        values
            .iter()
            .any(String::is_empty)
            .then_some("impersonating the empty string value in extra is not allowed")
    })
}

/// Name of the node that a user name belongs to.
pub(in super::super) fn node(username: &str) -> Option<&str> {
    username.strip_prefix("system:node:").filter(|name| is_subdomain(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(entries: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        entries.iter().map(|(key, list)| ((*key).to_owned(), values(list))).collect()
    }

    // S237
    #[test]
    fn constrained_modes_refuse_what_the_api_server_refuses() {
        for (groups, refused) in [
            (&["a", "b"][..], None),
            (&[], None),
            (&["a", ""], Some("")),
            (&["system:masters"], Some("system:masters")),
        ] {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            assert_eq!(invalid_group(&groups).map(|(group, _)| group), refused, "{groups:?}");
        }
        for (attributes, is_refused) in [
            (extra(&[("example.org/foo", &["x"])]), false),
            (extra(&[("", &["x"])]), true),
            (extra(&[("foo", &["x"])]), true),
            (extra(&[("example.org/Foo", &["x"])]), true),
            (extra(&[("example.org/foo", &[])]), true),
            (extra(&[("example.org/foo", &["x", ""])]), true),
            (extra(&[("example_.org/foo", &["x"])]), true),
        ] {
            assert_eq!(invalid_extra(&attributes).is_some(), is_refused, "{attributes:?}");
        }
    }

    // S237
    #[test]
    fn node_names_are_valid_subdomains() {
        for (username, expected) in [
            ("system:node:worker-1.example", Some("worker-1.example")),
            ("system:node:", None),
            ("system:node:A", None),
            ("system:node:a:b", None),
            ("system:nodes:a", None),
        ] {
            assert_eq!(node(username), expected, "{username}");
        }
    }

    // B13: UIDs and extras are not resources of the core group.
    #[test]
    fn legacy_permissions_are_those_of_the_api_server() {
        let target = UserInfo {
            username: "system:serviceaccount:ns:robot".into(),
            uid: "7".into(),
            groups: vec!["g".into()],
            extra: extra(&[("k.io/x", &["v"])]),
        };
        let asked: Vec<String> =
            legacy_permissions(UserRef::from(&target)).iter().map(ToString::to_string).collect();
        let expected = [
            "impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"ns\"",
            "impersonate resource \"uids\" in API group \"authentication.k8s.io\" at the cluster scope",
            "impersonate resource \"groups\" in API group \"\" at the cluster scope",
            "impersonate resource \"userextras/k.io/x\" in API group \"authentication.k8s.io\" at the cluster scope",
        ];
        assert_eq!(asked, expected);
    }
}
