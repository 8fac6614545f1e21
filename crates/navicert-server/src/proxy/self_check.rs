//! Checks the proxy's permissions with `SelfSubjectAccessReview` before a user needs them, and reports missing ones
//! as RBAC rules.
// S270, B12

use std::collections::BTreeSet;

use http::StatusCode;
use navicert_authn::reloadable::MappedAttributes;
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::identity_headers::{AllowedNames, encode};
use super::impersonation::ORIGINAL_USER_KEYS;
use super::reviews::{
    AccessReviewError, Permission, self_access_review, self_subject_review, server_version,
};
use super::settings::{IdentityMode, ImpersonationPolicy, ProxySettings, ServiceAccountTokens};
use crate::user_ref::UserRef;

const AUTHENTICATION: &str = "authentication.k8s.io";
/// User name for checking that the API server trusts the proxy's request headers.
const PROBE_USER: &str = "navicert:self-check";

/// What the proxy lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Permissions.
    Permissions(Vec<Permission>),
    /// The API server ignores identity headers from the proxy's certificate.
    Trust,
    /// The API server is too old to receive a UID.
    // S266
    Uid,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::Permissions(permissions) => {
                f.write_str("the proxy's account lacks permissions; add these rules to its ClusterRole:\n")?;
                cluster_role_rules(permissions).iter().try_for_each(|rule| f.write_str(rule))
            }
            Missing::Trust => f.write_str(
                "the API server does not accept identity headers from the proxy's certificate: check its \
                 --requestheader-client-ca-file, --requestheader-allowed-names and the names of the headers",
            ),
            Missing::Uid => {
                f.write_str("the API server is too old to receive a UID, and `requireUid` is set")
            }
        }
    }
}

/// The permissions that a proxy with these settings and mappings needs.
pub fn required_permissions(
    settings: &ProxySettings,
    mapped: &MappedAttributes,
    is_anonymous: bool,
) -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    if settings.mode == IdentityMode::Impersonation {
        needed.insert(Permission::impersonate("", "users"));
        if mapped.groups || is_anonymous || settings.client_impersonation == ImpersonationPolicy::Allow {
            needed.insert(Permission::impersonate("", "groups"));
        }
        if mapped.uid {
            needed.insert(Permission::impersonate(AUTHENTICATION, "uids"));
        }
        let is_impersonated = settings.service_account_tokens == ServiceAccountTokens::Impersonate;
        if settings.allowed_names.service_accounts || is_impersonated {
            needed.insert(Permission::impersonate("", "serviceaccounts"));
        }
        let mut keys: Vec<&str> = mapped.extra.iter().map(String::as_str).collect();
        if settings.client_impersonation == ImpersonationPolicy::Allow {
            keys.extend(ORIGINAL_USER_KEYS);
            needed.insert(create("authorization.k8s.io", "subjectaccessreviews"));
        }
        for key in keys {
            needed.insert(Permission::impersonate(AUTHENTICATION, "userextras").with_subresource(key));
        }
    }
    if settings.service_account_tokens != ServiceAccountTokens::Reject {
        needed.insert(create(AUTHENTICATION, "tokenreviews"));
    }
    needed
}

fn create(group: &str, resource: &str) -> Permission {
    Permission { verb: "create".to_owned(), ..Permission::impersonate(group, resource) }
}

/// Checks all of them with the API server.
///
/// # Errors
/// [`AccessReviewError`]: a review failed.
pub async fn check(
    upstream: &Transport,
    settings: &ProxySettings,
    mapped: &MappedAttributes,
    is_anonymous: bool,
) -> Result<Option<Missing>, AccessReviewError> {
    let mut missing = Vec::new();
    for permission in required_permissions(settings, mapped, is_anonymous) {
        if !self_access_review(upstream, &permission).await?
            && !has_constrained_impersonation(upstream, &permission).await?
        {
            missing.push(permission);
        }
    }
    if !missing.is_empty() {
        return Ok(Some(Missing::Permissions(missing)));
    }
    let (since, headers) = match &settings.mode {
        IdentityMode::Impersonation => ((1, 22), Vec::new()),
        IdentityMode::RequestHeader(names) => {
            let probe = UserInfo { username: PROBE_USER.to_owned(), ..UserInfo::default() };
            let headers = encode(UserRef::from(&probe), names, AllowedNames::default()).unwrap_or_default();
            // 401 means that the certificate is accepted neither for a front proxy nor for a user.
            let is_believed = match self_subject_review(upstream, &headers).await {
                Err(AccessReviewError::UnexpectedResponse { status: StatusCode::UNAUTHORIZED, .. }) => false,
                told => told? == PROBE_USER,
            };
            if !is_believed {
                return Ok(Some(Missing::Trust));
            }
            ((1, 32), headers)
        }
    };
    let is_old = settings.require_uid && server_version(upstream, &headers).await? < since;
    Ok(is_old.then_some(Missing::Uid))
}

/// The equivalent permission for constrained impersonation (KEP-5284).
// S237
async fn has_constrained_impersonation(
    upstream: &Transport,
    permission: &Permission,
) -> Result<bool, AccessReviewError> {
    let has_newer = ["users", "groups", "uids", "userextras"].contains(&permission.resource.as_str());
    if permission.verb != "impersonate" || !has_newer {
        return Ok(false);
    }
    let newer = Permission {
        verb: "impersonate:user-info".to_owned(),
        group: AUTHENTICATION.to_owned(),
        ..permission.clone()
    };
    self_access_review(upstream, &newer).await
}

/// The ClusterRole rules that grant these permissions, one per group and verb.
pub fn cluster_role_rules(permissions: &[Permission]) -> Vec<String> {
    let mut rules: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for Permission { verb, group, resource, subresource, .. } in permissions {
        let resource = match subresource.as_str() {
            "" => resource.clone(),
            part => format!("{resource}/{part}"),
        };
        match rules.iter_mut().find(|rule| (rule.0, rule.1) == (group.as_str(), verb.as_str())) {
            Some(rule) => rule.2.push(resource),
            None => rules.push((group, verb, vec![resource])),
        }
    }
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let rule = |(group, verb, resources): &(&str, &str, Vec<String>)| {
        // One line per rule, so that it can be copied from a log.
        format!("- {{apiGroups: [\"{group}\"], resources: [{}], verbs: [\"{verb}\"]}}\n", quoted(resources))
    };
    rules.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> MappedAttributes {
        MappedAttributes { groups: true, uid: true, extra: ["example.org/foo".to_owned()].into() }
    }

    // S270, B12
    #[test]
    fn required_permissions_follow_from_the_configuration() {
        let told = |settings: &ProxySettings, mapped: &MappedAttributes| {
            cluster_role_rules(&Vec::from_iter(required_permissions(settings, mapped, false))).concat()
        };
        assert_eq!(
            told(&ProxySettings::default(), &MappedAttributes::default()),
            "- {apiGroups: [\"\"], resources: [\"users\"], verbs: [\"impersonate\"]}\n"
        );
        assert_eq!(
            told(&ProxySettings::default(), &mapped()),
            "- {apiGroups: [\"\"], resources: [\"groups\", \"users\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"authentication.k8s.io\"], resources: [\"uids\", \"userextras/example.org/foo\"], \
             verbs: [\"impersonate\"]}\n"
        );
        let all = ProxySettings {
            client_impersonation: ImpersonationPolicy::Allow,
            service_account_tokens: ServiceAccountTokens::Impersonate,
            ..ProxySettings::default()
        };
        let all = told(&all, &mapped());
        for part in ["subjectaccessreviews", "tokenreviews", "serviceaccounts", "original-user.navicert/uid"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        let front = ProxySettings {
            mode: IdentityMode::RequestHeader(Default::default()),
            ..ProxySettings::default()
        };
        assert!(required_permissions(&front, &mapped(), true).is_empty(), "S231: no permissions apply");
    }
}
