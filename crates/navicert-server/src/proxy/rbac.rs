//! RBAC rules, roles and bindings that grant permissions, as YAML.

use std::fmt;

use navicert_types::tree::yaml_quoted;

use super::impersonation::service_account;
use super::permission::{Permission, PermissionTarget};

/// Name of the ClusterRole and of its binding.
const ROLE_NAME: &str = "navicert-proxy";
/// Longer lists are written with one entry per line.
const MAX_FLOW_BYTES: usize = 100;

/// A rule of a ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    scope: RuleScope,
    verbs: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RuleScope {
    /// `names`: the only objects; empty for all.
    Resources {
        group: String,
        resources: Vec<String>,
        names: Vec<String>,
    },
    Paths(Vec<String>),
}

/// The rules that grant permissions: one per API group and set of verbs, and one per resource with names. Namespaces are left
/// out.
pub(crate) fn policy_rules<'p>(permissions: impl IntoIterator<Item = &'p Permission>) -> Vec<PolicyRule> {
    let mut by_verb: Vec<PolicyRule> = Vec::new();
    for Permission { verb, target } in permissions {
        let verbs = vec![verb.to_string()];
        let scope = match target {
            PermissionTarget::Path(path) => RuleScope::Paths(vec![path.clone()]),
            PermissionTarget::Resource(target) => {
                let names = Some(target.name.clone()).filter(|name| !name.is_empty());
                RuleScope::Resources {
                    group: target.group.clone(),
                    resources: vec![target.path()],
                    names: names.into_iter().collect(),
                }
            }
        };
        match by_verb.iter_mut().find(|rule| rule.verbs == verbs && rule.scope.is_like(&scope)) {
            Some(rule) => rule.scope.extend(scope),
            None => by_verb.push(PolicyRule { scope, verbs }),
        }
    }
    let mut rules: Vec<PolicyRule> = Vec::new();
    for rule in by_verb {
        match rules.iter_mut().find(|known| known.scope == rule.scope) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => rules.push(rule),
        }
    }
    rules
}

/// The rules as list items, one per line, so that each can be copied from a log.
pub(crate) fn rule_lines<'p>(permissions: impl IntoIterator<Item = &'p Permission>) -> String {
    policy_rules(permissions).iter().map(|rule| format!("- {rule}\n")).collect()
}

impl RuleScope {
    /// Whether both belong in one rule.
    fn is_like(&self, other: &RuleScope) -> bool {
        match (self, other) {
            (RuleScope::Paths(_), RuleScope::Paths(_)) => true,
            (
                RuleScope::Resources { group, resources, names },
                RuleScope::Resources { group: other, resources: others, names: other_names },
            ) => {
                // Each name would apply to every resource of a common rule.
                let has_names = !names.is_empty();
                group == other && has_names != other_names.is_empty() && (!has_names || resources == others)
            }
            _ => false,
        }
    }

    fn extend(&mut self, more: RuleScope) {
        match (self, more) {
            (
                RuleScope::Resources { resources, names, .. },
                RuleScope::Resources { resources: more, names: more_names, .. },
            ) => {
                add(resources, more);
                add(names, more_names);
            }
            (RuleScope::Paths(paths), RuleScope::Paths(more)) => add(paths, more),
            _ => {}
        }
    }
}

/// Adds what is not known yet.
fn add(known: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

impl PolicyRule {
    /// Fields of the rule, in the order of Kubernetes' documentation.
    fn fields(&self) -> Vec<(&'static str, Vec<&str>)> {
        let mut fields = match &self.scope {
            RuleScope::Paths(paths) => vec![("nonResourceURLs", texts(paths))],
            RuleScope::Resources { group, resources, names } => {
                let mut fields = vec![("apiGroups", vec![group.as_str()]), ("resources", texts(resources))];
                if !names.is_empty() {
                    fields.push(("resourceNames", texts(names)));
                }
                fields
            }
        };
        fields.push(("verbs", texts(&self.verbs)));
        fields
    }

    fn block(&self) -> String {
        let mut text = String::new();
        for (index, (name, values)) in self.fields().into_iter().enumerate() {
            text += if index == 0 { "- " } else { "  " };
            let flow = flow_list(&values);
            if flow.len() <= MAX_FLOW_BYTES {
                text += &format!("{name}: {flow}\n");
                continue;
            }
            text += &format!("{name}:\n");
            values.iter().for_each(|value| text += &format!("  - {}\n", yaml_quoted(value)));
        }
        text
    }
}

/// On one line, in YAML's flow style.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields();
        let fields: Vec<String> =
            fields.iter().map(|(name, values)| format!("{name}: {}", flow_list(values))).collect();
        write!(f, "{{{}}}", fields.join(", "))
    }
}

/// The account that a role is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleSubject {
    /// A service account.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Any other user.
    User(String),
}

impl RoleSubject {
    /// The subject with this user name.
    pub fn from_username(username: &str) -> Self {
        match service_account(username) {
            Some((namespace, name)) => {
                RoleSubject::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
            }
            None => RoleSubject::User(username.to_owned()),
        }
    }

    fn fields(&self) -> String {
        match self {
            RoleSubject::ServiceAccount { namespace, name } => {
                format!(
                    "- kind: ServiceAccount\n  namespace: {}\n  name: {}\n",
                    yaml_quoted(namespace),
                    yaml_quoted(name)
                )
            }
            RoleSubject::User(name) => {
                format!(
                    "- kind: User\n  apiGroup: rbac.authorization.k8s.io\n  name: {}\n",
                    yaml_quoted(name)
                )
            }
        }
    }
}

/// A ClusterRole with exactly these permissions, and its binding.
pub fn cluster_role(permissions: &[Permission], subject: &RoleSubject) -> String {
    let rules: String = policy_rules(permissions).iter().map(PolicyRule::block).collect();
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {ROLE_NAME}\nrules:\n{rules}---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {ROLE_NAME}\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {ROLE_NAME}\nsubjects:\n{}",
        subject.fields()
    )
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn flow_list(values: &[&str]) -> String {
    format!("[{}]", values.iter().map(|value| yaml_quoted(value)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::permission::PermissionVerb;
    use super::*;

    #[test]
    fn rules_are_merged_by_group_and_verbs() {
        let on = |verb: &'static str| {
            PermissionVerb::ImpersonateOn(super::super::permission::ConstrainedMode::UserInfo, verb.into())
        };
        let path = Permission { verb: on("get"), target: PermissionTarget::Path("/*".to_owned()) };
        let permissions = [
            Permission::new(PermissionVerb::Impersonate, "", "users"),
            Permission::new(PermissionVerb::Impersonate, "", "groups"),
            Permission::new(PermissionVerb::Impersonate, "a.b", "userextras").with_subresource("c.d/e"),
            Permission::new(on("get"), "*", "*"),
            Permission::new(on("list"), "*", "*"),
            path,
        ];
        let expected = "- {apiGroups: [\"\"], resources: [\"users\", \"groups\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"a.b\"], resources: [\"userextras/c.d/e\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"impersonate-on:user-info:get\", \
             \"impersonate-on:user-info:list\"]}\n\
             - {nonResourceURLs: [\"/*\"], verbs: [\"impersonate-on:user-info:get\"]}\n";
        assert_eq!(rule_lines(&permissions), expected);
    }

    // A rule with two resources and two names would grant four permissions.
    #[test]
    fn names_are_merged_for_one_resource_only() {
        let named =
            |resource, name| Permission::new(PermissionVerb::Impersonate, "", resource).with_name(name);
        let permissions = [
            named("users", "a"),
            named("groups", "c"),
            named("users", "b"),
            Permission::new(PermissionVerb::Impersonate, "", "serviceaccounts"),
        ];
        let expected = "- {apiGroups: [\"\"], resources: [\"users\"], resourceNames: [\"a\", \"b\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"\"], resources: [\"groups\"], resourceNames: [\"c\"], verbs: [\"impersonate\"]}\n\
             - {apiGroups: [\"\"], resources: [\"serviceaccounts\"], verbs: [\"impersonate\"]}\n";
        assert_eq!(rule_lines(&permissions), expected);
    }

    #[test]
    fn subjects_are_service_accounts_or_users() {
        let robot = RoleSubject::from_username("system:serviceaccount:ns:robot");
        assert_eq!(robot, RoleSubject::ServiceAccount { namespace: "ns".into(), name: "robot".into() });
        assert_eq!(RoleSubject::from_username("a\"b").fields().lines().last(), Some("  name: \"a\\\"b\""));
    }
}
