//! The permissions that a proxy needs with its configuration, for both ways of impersonation: legacy (`impersonate`) and
//! constrained (KEP-5284, Kubernetes 1.36 and later). The self-check asks for them, and `--print-rbac` prints them.
// S233, S237, S270

use std::borrow::Cow;

use navicert_authn::CREDENTIAL_ID;
use navicert_authn::config::PossibleValues;
use navicert_authn::reloadable::MappedAttributes;

use super::identity_headers::AllowedNames;
use super::impersonation::{ORIGINAL_USER_KEYS, node, service_account};
use super::permission::{AUTHENTICATION, ConstrainedMode, Permission, PermissionTarget, PermissionVerb};
use super::settings::{IdentityMode, ImpersonationPolicy, ProxySettings, ServiceAccountTokens};
use crate::user_ref::{ANONYMOUS, UNAUTHENTICATED};

/// Verbs of requests for resources.
const RESOURCE_VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// Verbs of requests for other paths, such as `/version` and discovery: kube-apiserver serves nothing else there.
const PATH_VERBS: [&str; 1] = ["get"];

/// Attributes with more possible values need a permission for any value: the self-check asks for each.
const MAX_NAMED_VALUES: usize = 64;

/// Extra attributes of a service account whose token is bound to a pod or node.
// S276
pub(crate) const BOUND_TOKEN_KEYS: [&str; 5] = [
    CREDENTIAL_ID,
    "authentication.kubernetes.io/pod-name",
    "authentication.kubernetes.io/pod-uid",
    "authentication.kubernetes.io/node-name",
    "authentication.kubernetes.io/node-uid",
];

/// A way of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpersonationWay {
    /// Verb `impersonate`: any request for any identity that the rules name.
    Legacy,
    /// Verbs `impersonate:<mode>` and `impersonate-on:<mode>:<verb>`.
    Constrained,
}

/// Users that the proxy acts for, of one kind: the API server authorizes each kind in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// Users that tokens map to, anonymous requests and targets of `kubectl --as`.
    Users,
    /// Service accounts whose token the API server reviewed.
    ReviewedServiceAccounts,
    /// Service accounts that tokens map to (`allowedNames.serviceAccounts`).
    MappedServiceAccounts,
    /// Nodes that tokens map to (`allowedNames.nodes`).
    MappedNodes,
}

/// What the proxy needs to act for users of one kind.
#[derive(Clone, Debug)]
pub struct SubjectPermissions {
    /// The kind.
    pub kind: SubjectKind,
    /// The permissions in the legacy way. The first is the one for the user name.
    pub legacy: Vec<Permission>,
    /// Those of constrained impersonation, where it can pass the whole identity.
    pub constrained: Option<ConstrainedPermissions>,
}

/// The two halves of constrained impersonation.
#[derive(Clone, Debug)]
pub struct ConstrainedPermissions {
    /// For the parts of an identity: all are needed.
    pub identity: Vec<Permission>,
    /// For requests: each permits requests with its verb.
    pub requests: Vec<Permission>,
}

/// Everything a proxy needs.
#[derive(Clone, Debug, Default)]
pub struct RequiredPermissions {
    /// For the proxy's own requests.
    pub own: Vec<Permission>,
    /// For acting for others.
    pub subjects: Vec<SubjectPermissions>,
}

impl RequiredPermissions {
    /// What a proxy with these settings and mappings needs.
    pub fn new(settings: &ProxySettings, mapped: &MappedAttributes, is_anonymous: bool) -> Self {
        let mut required = RequiredPermissions::default();
        if settings.service_account_tokens != ServiceAccountTokens::Reject {
            required.own.push(Permission::create(AUTHENTICATION, "tokenreviews"));
        }
        // No permissions apply to a front proxy.
        // S231
        if settings.mode != IdentityMode::Impersonation {
            return required;
        }
        let allows_impersonation = settings.client_impersonation == ImpersonationPolicy::Allow;
        if allows_impersonation {
            required.own.push(Permission::create("authorization.k8s.io", "subjectaccessreviews"));
        }
        let mut users = IdentityParts::from_mapped(mapped, settings.allowed_names);
        let mut names = only(&mapped.usernames, |name| is_plain(name, settings.allowed_names));
        if is_anonymous {
            names = names.or([ANONYMOUS].into());
            users.groups = users.groups.or([UNAUTHENTICATED].into());
        }
        if allows_impersonation {
            (names, users.groups) = (PossibleValues::Any, PossibleValues::Any);
            users.extra.extend(ORIGINAL_USER_KEYS.map(|key| (key, PossibleValues::Any)));
        }
        if !names.is_none() {
            required.subjects.push(SubjectPermissions {
                kind: SubjectKind::Users,
                legacy: users.legacy("users", &names),
                constrained: Some(users.user_info(&names)),
            });
        }
        if settings.service_account_tokens == ServiceAccountTokens::Impersonate {
            let extra = BOUND_TOKEN_KEYS.map(|key| (key, PossibleValues::Any)).into();
            let bound = IdentityParts { groups: PossibleValues::Any, uid: true, extra };
            required.subjects.push(SubjectPermissions {
                kind: SubjectKind::ReviewedServiceAccounts,
                legacy: bound.legacy("serviceaccounts", &PossibleValues::Any),
                constrained: Some(ConstrainedPermissions::for_service_accounts()),
            });
        }
        // Constrained impersonation takes nothing but the name of a service account or node, so that it can not pass
        // what the token maps besides; a node would even get the group `system:nodes`.
        let accounts = only(&mapped.usernames, |name| service_account(name).is_some());
        if settings.allowed_names.service_accounts && !accounts.is_none() {
            // A name in a rule would need a role in the account's namespace.
            let legacy = users.legacy("serviceaccounts", &PossibleValues::Any);
            let kind = SubjectKind::MappedServiceAccounts;
            required.subjects.push(SubjectPermissions { kind, legacy, constrained: None });
        }
        let nodes = only(&mapped.usernames, |name| node(name).is_some());
        if settings.allowed_names.nodes && !nodes.is_none() {
            let legacy = users.legacy("users", &nodes);
            let kind = SubjectKind::MappedNodes;
            required.subjects.push(SubjectPermissions { kind, legacy, constrained: None });
        }
        required
    }

    /// All of them in one way, each once. Users that cannot be impersonated in that way take the legacy one.
    pub fn in_way(&self, way: ImpersonationWay) -> Vec<Permission> {
        let mut all: Vec<Permission> = Vec::new();
        let subjects = self.subjects.iter().flat_map(|subject| match (&subject.constrained, way) {
            (Some(constrained), ImpersonationWay::Constrained) => {
                constrained.identity.iter().chain(&constrained.requests)
            }
            _ => subject.legacy.iter().chain(&[]),
        });
        for permission in subjects.chain(&self.own) {
            if !all.contains(permission) {
                all.push(permission.clone());
            }
        }
        // A permission for any value includes those for some.
        let any: Vec<Permission> = all.iter().filter(|one| one.name().is_empty()).cloned().collect();
        all.retain(|one| one.name().is_empty() || !any.contains(&one.clone().with_name("")));
        all
    }
}

/// Those of the values that `is_kept` accepts.
fn only(values: &PossibleValues, is_kept: impl Fn(&str) -> bool) -> PossibleValues {
    match values {
        PossibleValues::Any => PossibleValues::Any,
        PossibleValues::Only(values) => {
            PossibleValues::Only(values.iter().filter(|value| is_kept(value)).cloned().collect())
        }
    }
}

/// Whether the proxy forwards a token's user of this name, and as a user of no special kind.
fn is_plain(name: &str, allowed: AllowedNames) -> bool {
    service_account(name).is_none() && node(name).is_none() && allowed.permits_username(name)
}

/// Which parts identities have besides their name.
struct IdentityParts<'a> {
    groups: PossibleValues,
    uid: bool,
    extra: Vec<(&'a str, PossibleValues)>,
}

impl<'a> IdentityParts<'a> {
    fn from_mapped(mapped: &'a MappedAttributes, allowed: AllowedNames) -> Self {
        IdentityParts {
            groups: only(&mapped.groups, |group| allowed.permits_group(group)),
            uid: mapped.uid,
            extra: mapped.extra.iter().map(|(key, values)| (key.as_str(), values.clone())).collect(),
        }
    }

    fn legacy(&self, name_resource: &str, names: &PossibleValues) -> Vec<Permission> {
        self.permissions(&PermissionVerb::Impersonate, "", name_resource, names)
    }

    fn user_info(&self, names: &PossibleValues) -> ConstrainedPermissions {
        let mode = ConstrainedMode::UserInfo;
        ConstrainedPermissions {
            identity: self.permissions(&PermissionVerb::ImpersonateAs(mode), AUTHENTICATION, "users", names),
            requests: request_permissions(mode),
        }
    }

    fn permissions(
        &self,
        verb: &PermissionVerb,
        group: &str,
        name_resource: &str,
        names: &PossibleValues,
    ) -> Vec<Permission> {
        let new = |group: &str, resource: &str| Permission::new(verb.clone(), group, resource);
        let mut permissions = for_values(&new(group, name_resource), names);
        permissions.extend(for_values(&new(group, "groups"), &self.groups));
        if self.uid {
            permissions.push(new(AUTHENTICATION, "uids"));
        }
        for (key, values) in &self.extra {
            let one = new(AUTHENTICATION, "userextras").with_subresource(key);
            permissions.extend(for_values(&one, values));
        }
        permissions
    }
}

/// A permission for each of the values, or for any.
fn for_values(permission: &Permission, values: &PossibleValues) -> Vec<Permission> {
    match values {
        PossibleValues::Only(values) if values.len() <= MAX_NAMED_VALUES => {
            values.iter().map(|value| permission.clone().with_name(value)).collect()
        }
        _ => vec![permission.clone()],
    }
}

impl ConstrainedPermissions {
    fn for_service_accounts() -> Self {
        let mode = ConstrainedMode::ServiceAccount;
        let name = Permission::new(PermissionVerb::ImpersonateAs(mode), AUTHENTICATION, "serviceaccounts");
        ConstrainedPermissions { identity: vec![name], requests: request_permissions(mode) }
    }
}

/// Any request, by its verb.
fn request_permissions(mode: ConstrainedMode) -> Vec<Permission> {
    let on = |verb: &'static str| PermissionVerb::ImpersonateOn(mode, Cow::Borrowed(verb));
    let resources = RESOURCE_VERBS.iter().map(|verb| Permission::new(on(verb), "*", "*"));
    let paths = PATH_VERBS
        .iter()
        .map(|verb| Permission { verb: on(verb), target: PermissionTarget::Path("/*".to_owned()) });
    resources.chain(paths).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rbac::rule_lines;
    use super::*;

    fn mapped() -> MappedAttributes {
        MappedAttributes {
            usernames: PossibleValues::Any,
            groups: PossibleValues::Any,
            uid: true,
            extra: [("example.org/foo".to_owned(), PossibleValues::Any)].into(),
        }
    }

    /// Users with a name and nothing else.
    fn names_only() -> MappedAttributes {
        MappedAttributes { usernames: PossibleValues::Any, ..MappedAttributes::default() }
    }

    fn rules(settings: &ProxySettings, mapped: &MappedAttributes, way: ImpersonationWay) -> String {
        rule_lines(&RequiredPermissions::new(settings, mapped, false).in_way(way))
    }

    // S270, B12
    #[test]
    fn required_permissions_follow_from_the_configuration() {
        let legacy = |settings: &ProxySettings, mapped: &MappedAttributes| {
            rules(settings, mapped, ImpersonationWay::Legacy)
        };
        assert_eq!(
            legacy(&ProxySettings::default(), &names_only()),
            "- {apiGroups: [\"\"], resources: [\"users\"], verbs: [\"impersonate\"]}\n"
        );
        assert_eq!(
            legacy(&ProxySettings::default(), &mapped()),
            "- {apiGroups: [\"\"], resources: [\"users\", \"groups\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"authentication.k8s.io\"], resources: [\"uids\", \"userextras/example.org/foo\"], \
             verbs: [\"impersonate\"]}\n"
        );
        let all = ProxySettings {
            client_impersonation: ImpersonationPolicy::Allow,
            service_account_tokens: ServiceAccountTokens::Impersonate,
            ..ProxySettings::default()
        };
        let all = legacy(&all, &mapped());
        for part in ["subjectaccessreviews", "tokenreviews", "serviceaccounts", "original-user.navicert/uid"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        let front = ProxySettings {
            mode: IdentityMode::RequestHeader(Default::default()),
            ..ProxySettings::default()
        };
        for way in [ImpersonationWay::Legacy, ImpersonationWay::Constrained] {
            assert_eq!(rules(&front, &mapped(), way), "", "S231: no permissions apply");
        }
    }

    // S237: both halves, and nothing of the legacy way.
    #[test]
    fn constrained_permissions_have_both_halves() {
        let rules = rules(&ProxySettings::default(), &mapped(), ImpersonationWay::Constrained);
        let lines: Vec<&str> = rules.lines().collect();
        assert_eq!(lines.len(), 3, "{rules}");
        assert_eq!(
            lines[0],
            "- {apiGroups: [\"authentication.k8s.io\"], resources: [\"users\", \"groups\", \"uids\", \
             \"userextras/example.org/foo\"], verbs: [\"impersonate:user-info\"]}"
        );
        assert!(lines[1].starts_with(
            "- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"impersonate-on:user-info:get\""
        ));
        for verb in RESOURCE_VERBS {
            assert!(lines[1].contains(&format!("\"impersonate-on:user-info:{verb}\"")), "{verb}");
        }
        assert_eq!(lines[2], "- {nonResourceURLs: [\"/*\"], verbs: [\"impersonate-on:user-info:get\"]}");
    }

    // S276: an account's UID and the attributes of a bound token are permissions of the legacy way; constrained
    // impersonation takes the name alone.
    #[test]
    fn reviewed_service_accounts_need_uid_and_bound_token_attributes_or_their_name_alone() {
        let settings = ProxySettings {
            service_account_tokens: ServiceAccountTokens::Impersonate,
            ..ProxySettings::default()
        };
        let required = RequiredPermissions::new(&settings, &names_only(), false);
        let subject = &required.subjects[1];
        assert_eq!(subject.kind, SubjectKind::ReviewedServiceAccounts);
        let legacy = rule_lines(&subject.legacy);
        for part in ["serviceaccounts", "groups", "uids"].into_iter().chain(BOUND_TOKEN_KEYS) {
            assert!(legacy.contains(part), "{part}: {legacy}");
        }
        let constrained = subject.constrained.as_ref().unwrap();
        assert_eq!(
            rule_lines(&constrained.identity),
            "- {apiGroups: [\"authentication.k8s.io\"], resources: [\"serviceaccounts\"], \
             verbs: [\"impersonate:serviceaccount\"]}\n"
        );
        assert!(rule_lines(&constrained.requests).contains("impersonate-on:serviceaccount:deletecollection"));
    }

    // S269: names of service accounts and nodes that tokens map to have only the legacy way.
    #[test]
    fn mapped_service_accounts_and_nodes_have_only_the_legacy_way() {
        let settings = ProxySettings { allowed_names: AllowedNames::ALL, ..ProxySettings::default() };
        let rules = rules(&settings, &mapped(), ImpersonationWay::Constrained);
        let legacy = "- {apiGroups: [\"\"], resources: [\"serviceaccounts\", \"groups\", \"users\"], \
                      verbs: [\"impersonate\"]}";
        assert!(rules.lines().any(|line| line == legacy), "{rules}");
    }

    fn fixed() -> MappedAttributes {
        MappedAttributes {
            usernames: ["ci", "cd", "system:anonymous", "system:serviceaccount:ci:robot"].into(),
            groups: ["corp:ci", "system:masters"].into(),
            uid: false,
            extra: [
                ("example.org/stage".to_owned(), ["prod"].into()),
                ("example.org/team".to_owned(), PossibleValues::Any),
            ]
            .into(),
        }
    }

    // S233: values that a configuration fixes are the only ones that the role names, if the proxy forwards them at all.
    #[test]
    fn fixed_values_are_the_only_ones_that_a_role_names() {
        let settings = ProxySettings::default();
        let expected = "- {apiGroups: [\"\"], resources: [\"users\"], resourceNames: [\"cd\", \"ci\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"\"], resources: [\"groups\"], resourceNames: [\"corp:ci\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"authentication.k8s.io\"], resources: [\"userextras/example.org/stage\"], \
             resourceNames: [\"prod\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"authentication.k8s.io\"], resources: [\"userextras/example.org/team\"], verbs: [\"impersonate\"]}\n";
        assert_eq!(rules(&settings, &fixed(), ImpersonationWay::Legacy), expected);
        let constrained = rules(&settings, &fixed(), ImpersonationWay::Constrained);
        let groups = "- {apiGroups: [\"authentication.k8s.io\"], resources: [\"groups\"], resourceNames: [\"corp:ci\"], \
                      verbs: [\"impersonate:user-info\"]}\n";
        assert!(constrained.contains(groups), "{constrained}");
        // `kubectl --as` has any target.
        let settings =
            ProxySettings { client_impersonation: ImpersonationPolicy::Allow, ..ProxySettings::default() };
        let any = rules(&settings, &fixed(), ImpersonationWay::Legacy);
        assert!(any.contains("resources: [\"users\", \"groups\"], verbs"), "{any}");
        // What is allowed besides.
        let settings = ProxySettings { allowed_names: AllowedNames::ALL, ..ProxySettings::default() };
        let all = rules(&settings, &fixed(), ImpersonationWay::Legacy);
        for part in [
            "resourceNames: [\"cd\", \"ci\", \"system:anonymous\"]",
            "resourceNames: [\"corp:ci\", \"system:masters\"]",
            "resources: [\"serviceaccounts\"], verbs",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
    }

    // S233: anonymous requests have one name and one group.
    #[test]
    fn anonymous_requests_need_their_own_name_and_group_only() {
        let role = |mapped: &MappedAttributes| {
            let required = RequiredPermissions::new(&ProxySettings::default(), mapped, true);
            rule_lines(&required.in_way(ImpersonationWay::Legacy))
        };
        let expected = "- {apiGroups: [\"\"], resources: [\"users\"], resourceNames: [\"system:anonymous\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"\"], resources: [\"groups\"], resourceNames: [\"system:unauthenticated\"], verbs: [\"impersonate\"]}\n";
        assert_eq!(role(&MappedAttributes::default()), expected);
        let with_names = role(&names_only());
        assert!(with_names.contains("resources: [\"users\"], verbs"), "{with_names}");
        assert!(with_names.contains("resourceNames: [\"system:unauthenticated\"]"), "{with_names}");
    }

    // A review per value: many values need a permission for any.
    #[test]
    fn many_fixed_values_need_a_permission_for_any_value() {
        let groups = |count: usize| MappedAttributes {
            groups: PossibleValues::Only((0..count).map(|number| format!("g{number}")).collect()),
            ..names_only()
        };
        let of = |count| rules(&ProxySettings::default(), &groups(count), ImpersonationWay::Legacy);
        assert!(of(MAX_NAMED_VALUES).contains("\"g63\""));
        let any = "- {apiGroups: [\"\"], resources: [\"users\", \"groups\"], verbs: [\"impersonate\"]}\n";
        assert_eq!(of(MAX_NAMED_VALUES + 1), any);
    }

    // A rule that another one includes could be left out.
    #[test]
    fn permissions_for_any_value_replace_those_for_some() {
        let settings = ProxySettings {
            service_account_tokens: ServiceAccountTokens::Impersonate,
            ..ProxySettings::default()
        };
        let rules = rules(&settings, &fixed(), ImpersonationWay::Legacy);
        assert!(rules.contains("resources: [\"serviceaccounts\", \"groups\"], verbs"), "{rules}");
        assert!(!rules.contains("corp:ci") && rules.contains("resourceNames: [\"cd\", \"ci\"]"), "{rules}");
    }

    // Service accounts alone need no permission on users.
    #[test]
    fn without_issuers_only_service_accounts_are_impersonated() {
        let settings = ProxySettings {
            service_account_tokens: ServiceAccountTokens::Impersonate,
            ..ProxySettings::default()
        };
        for way in [ImpersonationWay::Legacy, ImpersonationWay::Constrained] {
            let rules = rules(&settings, &MappedAttributes::default(), way);
            assert!(!rules.contains("\"users\"") && rules.contains("\"serviceaccounts\""), "{rules}");
        }
    }
}
