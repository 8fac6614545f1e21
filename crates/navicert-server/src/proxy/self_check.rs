//! What the proxy needs from the API server, asked before a user finds out: each permission by a
//! `SelfSubjectAccessReview`, and what is missing as the rule to add (structured-authentication.md S270, B12).

use std::collections::BTreeSet;

use http::StatusCode;
use navicert_authn::live::Mapped;
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::identity_headers::{Allowed, encode};
use super::nested::ORIGINAL_KEYS;
use super::reviews::{Permission, ReviewError, may_we, version, who_are_we};
use super::settings::{Mode, Nested, ServiceAccountTokens, Settings};
use crate::who::Told;

const AUTHENTICATION: &str = "authentication.k8s.io";
/// Whom the API server should take the proxy for when it says so in the headers of a front proxy.
const PROBE: &str = "navicert:self-check";

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// These permissions.
    Permissions(Vec<Permission>),
    /// The API server does not take our word in request headers.
    Trust,
    /// The API server is too old to be told a UID (S266).
    Uid,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::Permissions(permissions) => {
                f.write_str("the proxy's account lacks permissions; add these rules to its ClusterRole:\n")?;
                rules(permissions).iter().try_for_each(|rule| f.write_str(rule))
            }
            Missing::Trust => f.write_str(
                "the API server does not take identities from the proxy's certificate: look at its \
                 --requestheader-client-ca-file, --requestheader-allowed-names and the names of the headers",
            ),
            Missing::Uid => {
                f.write_str("the API server is too old to be told a UID, and `requireUid` is set")
            }
        }
    }
}

/// What a proxy with these settings can need, for users who can have this.
pub fn needed(settings: &Settings, mapped: &Mapped, is_anonymous: bool) -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    if settings.mode == Mode::Impersonation {
        needed.insert(Permission::impersonate("", "users"));
        if mapped.groups || is_anonymous || settings.client_impersonation == Nested::Allow {
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
        if settings.client_impersonation == Nested::Allow {
            keys.extend(ORIGINAL_KEYS);
            needed.insert(create("authorization.k8s.io", "subjectaccessreviews"));
        }
        for key in keys {
            needed.insert(Permission::impersonate(AUTHENTICATION, "userextras").part(key));
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

/// Asks the API server about all of it.
///
/// # Errors
/// [`ReviewError`]: it does not say.
pub async fn check(
    upstream: &Transport,
    settings: &Settings,
    mapped: &Mapped,
    is_anonymous: bool,
) -> Result<Option<Missing>, ReviewError> {
    let mut missing = Vec::new();
    for permission in needed(settings, mapped, is_anonymous) {
        if !may_we(upstream, &permission).await? && !may_constrained(upstream, &permission).await? {
            missing.push(permission);
        }
    }
    if !missing.is_empty() {
        return Ok(Some(Missing::Permissions(missing)));
    }
    let (since, headers) = match &settings.mode {
        Mode::Impersonation => ((1, 22), Vec::new()),
        Mode::RequestHeader(names) => {
            let probe = UserInfo { username: PROBE.to_owned(), ..UserInfo::default() };
            let headers = encode(Told::from(&probe), names, Allowed::default()).unwrap_or_default();
            // A front proxy's certificate alone is nobody's: a refusal says that it is not taken for one either.
            let is_believed = match who_are_we(upstream, &headers).await {
                Err(ReviewError::Answer { status: StatusCode::UNAUTHORIZED, .. }) => false,
                told => told? == PROBE,
            };
            if !is_believed {
                return Ok(Some(Missing::Trust));
            }
            ((1, 32), headers)
        }
    };
    let is_old = settings.require_uid && version(upstream, &headers).await? < since;
    Ok(is_old.then_some(Missing::Uid))
}

/// The newer way to be allowed the same (KEP-5284, S237).
async fn may_constrained(upstream: &Transport, permission: &Permission) -> Result<bool, ReviewError> {
    let has_newer = ["users", "groups", "uids", "userextras"].contains(&permission.resource.as_str());
    if permission.verb != "impersonate" || !has_newer {
        return Ok(false);
    }
    let newer = Permission {
        verb: "impersonate:user-info".to_owned(),
        group: AUTHENTICATION.to_owned(),
        ..permission.clone()
    };
    may_we(upstream, &newer).await
}

/// The rules of a ClusterRole that give these, one for each group and verb.
pub fn rules(permissions: &[Permission]) -> Vec<String> {
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
        // One line each, so that it can be copied from wherever lines are joined.
        format!("- {{apiGroups: [\"{group}\"], resources: [{}], verbs: [\"{verb}\"]}}\n", quoted(resources))
    };
    rules.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> Mapped {
        Mapped { groups: true, uid: true, extra: ["example.org/foo".to_owned()].into() }
    }

    // S270, B12
    #[test]
    fn what_is_needed_follows_from_the_configuration() {
        let told = |settings: &Settings, mapped: &Mapped| {
            rules(&Vec::from_iter(needed(settings, mapped, false))).concat()
        };
        assert_eq!(
            told(&Settings::default(), &Mapped::default()),
            "- {apiGroups: [\"\"], resources: [\"users\"], verbs: [\"impersonate\"]}\n"
        );
        assert_eq!(
            told(&Settings::default(), &mapped()),
            "- {apiGroups: [\"\"], resources: [\"groups\", \"users\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"authentication.k8s.io\"], resources: [\"uids\", \"userextras/example.org/foo\"], \
             verbs: [\"impersonate\"]}\n"
        );
        let all = Settings {
            client_impersonation: Nested::Allow,
            service_account_tokens: ServiceAccountTokens::Impersonate,
            ..Settings::default()
        };
        let all = told(&all, &mapped());
        for part in ["subjectaccessreviews", "tokenreviews", "serviceaccounts", "original-user.navicert/uid"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        let front = Settings { mode: Mode::RequestHeader(Default::default()), ..Settings::default() };
        assert!(needed(&front, &mapped(), true).is_empty(), "S231: no permissions apply");
    }
}
