//! What a client receives when the API server does not permit the proxy's own account to impersonate: the missing RBAC
//! rule, never a denial that the user would read as one of their own.
// S246

use super::denial::Denial;
use super::impersonation::legacy_permissions;
use super::permission::{Permission, PermissionVerb};
use super::rbac::policy_rules;
use super::required_permissions::ImpersonationWay;
use super::upstream_access::UpstreamAccess;
use crate::problem::Problem;
use crate::user_ref::UserRef;

/// The problem behind the message of a 403, if it is the proxy's account that was denied. `user` is the impersonated user.
pub(super) async fn problem(message: &str, user: UserRef<'_>, access: &UpstreamAccess) -> Option<Problem> {
    let denial = Denial::of_impersonation(message)?;
    if access.own_username().await? != denial.user {
        return None;
    }
    let text = explanation(&denial, user, access.way());
    tracing::warn!(event = "upstream_impersonation_denied", reason = text, "failed to impersonate a user");
    Some(Problem::MissingPermission(text))
}

fn explanation(denial: &Denial, user: UserRef<'_>, way: Option<ImpersonationWay>) -> String {
    let prefix = "the API server does not permit the proxy to impersonate this user";
    let is_legacy = matches!(&denial.permission.verb, PermissionVerb::Other(verb) if verb == "impersonate");
    let is_constrained = way == Some(ImpersonationWay::Constrained);
    if let Some(refusal) = denial.refusal().filter(|_| is_constrained) {
        return format!("{prefix}: {refusal}");
    }
    // A role that names single users or groups is for an operator to write.
    let rules = |permissions: &[Permission]| {
        let unnamed: Vec<Permission> = permissions.iter().map(|one| one.clone().with_name("")).collect();
        policy_rules(&unnamed).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    if is_legacy || is_constrained {
        let missing = rules(std::slice::from_ref(&denial.permission));
        return format!("{prefix}; missing rule of its ClusterRole: {missing}");
    }
    // The API server names a constrained permission first, whatever rules there are.
    let needed = rules(&legacy_permissions(user));
    format!("{prefix}; missing at least one of the rules for this user: {needed}")
}

#[cfg(test)]
mod tests {
    use navicert_types::token_review::UserInfo;

    use super::*;

    // S246: the rule is one of the way that the proxy's other rules take.
    #[test]
    fn names_the_missing_rule() {
        let ann = UserInfo { username: "ann".into(), groups: vec!["dev".into()], ..UserInfo::default() };
        let text = |message: &str, way| {
            let denial = Denial::of_impersonation(message).unwrap();
            explanation(&denial, UserRef::from(&ann), way)
        };
        let legacy = "groups \"dev\" is forbidden: User \"proxy\" cannot impersonate resource \"groups\" in API group \"\" at the cluster scope";
        let constrained = "pods is forbidden: User \"proxy\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"a\"";
        let groups = "{apiGroups: [\"\"], resources: [\"groups\"], verbs: [\"impersonate\"]}";
        for way in [None, Some(ImpersonationWay::Legacy), Some(ImpersonationWay::Constrained)] {
            assert!(text(legacy, way).ends_with(&format!("missing rule of its ClusterRole: {groups}")));
        }
        let on = "{apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"impersonate-on:user-info:list\"]}";
        let found = text(constrained, Some(ImpersonationWay::Constrained));
        assert!(found.ends_with(&format!("missing rule of its ClusterRole: {on}")), "{found}");
        for way in [None, Some(ImpersonationWay::Legacy)] {
            let found = text(constrained, way);
            let both = "{apiGroups: [\"\"], resources: [\"users\", \"groups\"], verbs: [\"impersonate\"]}";
            assert!(found.ends_with(&format!("one of the rules for this user: {both}")), "{found}");
        }
    }
}
