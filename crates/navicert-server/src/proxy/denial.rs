//! Denials as the API server words them: written for a user who may not impersonate, and read from responses, to tell
//! a missing permission of the proxy from one of its user.
// S246

use std::borrow::Cow;
use std::fmt;

use super::permission::{Permission, PermissionTarget, PermissionVerb, ResourceTarget};

/// A user lacks a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    /// The user.
    pub user: String,
    /// The permission.
    pub permission: Permission,
    /// Why, if there is a reason besides the missing permission.
    pub reason: Option<Cow<'static, str>>,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Denial { user, permission, reason } = self;
        if let PermissionTarget::Resource(target) = &permission.target {
            f.write_str(&target.resource)?;
            if !target.group.is_empty() {
                write!(f, ".{}", target.group)?;
            }
            if !target.name.is_empty() {
                write!(f, " \"{}\"", target.name)?;
            }
            f.write_str(" is ")?;
        }
        write!(f, "forbidden: User \"{user}\" cannot {permission}")?;
        reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

impl Denial {
    /// The denial in the message of a `Status`, if it is one of impersonation.
    pub(crate) fn of_impersonation(message: &str) -> Option<Self> {
        let (_, rest) = message.split_once("forbidden: User \"")?;
        let (user, rest) = rest.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(' ')?;
        let is_impersonation =
            verb == "impersonate" || verb.starts_with("impersonate:") || verb.starts_with("impersonate-on:");
        if !is_impersonation {
            return None;
        }
        let (target, rest) = match rest.strip_prefix("path \"") {
            Some(rest) => {
                let (path, rest) = rest.split_once('"')?;
                (PermissionTarget::Path(path.to_owned()), rest)
            }
            None => read_resource(rest)?,
        };
        let verb = PermissionVerb::Other(verb.to_owned());
        let reason = rest.strip_prefix(": ").map(|reason| Cow::Owned(reason.to_owned()));
        Some(Denial { user: user.to_owned(), permission: Permission { verb, target }, reason })
    }

    /// Why the identity cannot be impersonated whatever is permitted.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.reason.as_deref().filter(|reason| reason.starts_with("impersonating "))
    }
}

/// The resource, and what follows it.
fn read_resource(text: &str) -> Option<(PermissionTarget, &str)> {
    let (path, rest) = text.strip_prefix("resource \"")?.split_once("\" in API group \"")?;
    let (group, rest) = rest.split_once('"')?;
    let (namespace, rest) = match rest.strip_prefix(" in the namespace \"") {
        Some(rest) => rest.split_once('"')?,
        None => ("", rest.strip_prefix(" at the cluster scope")?),
    };
    let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
    let target = ResourceTarget {
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        ..ResourceTarget::new(group, resource)
    };
    Some((PermissionTarget::Resource(target), rest))
}

#[cfg(test)]
mod tests {
    use super::super::permission::{AUTHENTICATION, ConstrainedMode};
    use super::*;

    fn read(message: &str) -> Option<(String, String)> {
        Denial::of_impersonation(message).map(|denial| (denial.user, denial.permission.to_string()))
    }

    // S246: the texts of kube-apiserver 1.37.
    #[test]
    fn reads_denials_of_impersonation_only() {
        for (message, expected) in [
            (
                "users \"ann\" is forbidden: User \"proxy\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
                Some(("proxy", "impersonate resource \"users\" in API group \"\" at the cluster scope")),
            ),
            (
                "pods is forbidden: User \"system:serviceaccount:navicert:navicert-proxy\" cannot \
                 impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\": why",
                Some((
                    "system:serviceaccount:navicert:navicert-proxy",
                    "impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\"",
                )),
            ),
            (
                "userextras.authentication.k8s.io \"x\" is forbidden: User \"proxy\" cannot impersonate:user-info resource \
                 \"userextras/example.org/foo\" in API group \"authentication.k8s.io\" at the cluster scope",
                Some((
                    "proxy",
                    "impersonate:user-info resource \"userextras/example.org/foo\" in API group \
                     \"authentication.k8s.io\" at the cluster scope",
                )),
            ),
            (
                "forbidden: User \"proxy\" cannot impersonate-on:user-info:get path \"/version\"",
                Some(("proxy", "impersonate-on:user-info:get path \"/version\"")),
            ),
            (
                "pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
                None,
            ),
            ("forbidden: User \"ann\" cannot get path \"/impersonate\"", None),
            ("pods is forbidden: User \"ann\" cannot impersonates resource \"pods\"", None),
            ("forbidden: User \"a\" cannot impersonate", None),
            ("forbidden: User \"a\" cannot impersonate resource \"users\"", None),
            ("", None),
        ] {
            let expected = expected.map(|(user, permission)| (user.to_owned(), permission.to_owned()));
            assert_eq!(read(message), expected, "{message}");
        }
    }

    // S237
    #[test]
    fn refusals_of_constrained_impersonation_are_no_missing_rules() {
        let message = "groups.authentication.k8s.io \"system:masters\" is forbidden: User \"proxy\" cannot \
                       impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster \
                       scope: impersonating the system:masters group is not allowed";
        let denial = Denial::of_impersonation(message).unwrap();
        assert_eq!(denial.refusal(), Some("impersonating the system:masters group is not allowed"));
    }

    #[test]
    fn written_denials_are_read_back() {
        let verb = PermissionVerb::ImpersonateAs(ConstrainedMode::ServiceAccount);
        for permission in [
            Permission::new(PermissionVerb::Impersonate, "", "users").with_name("bob"),
            Permission::new(verb, AUTHENTICATION, "serviceaccounts").with_namespace("ns").with_name("robot"),
        ] {
            let text = permission.to_string();
            let denial = Denial { user: "ann".to_owned(), permission, reason: Some("because".into()) };
            let read = Denial::of_impersonation(&denial.to_string()).unwrap();
            assert_eq!((read.user.as_str(), read.permission.to_string()), ("ann", text));
            assert_eq!((read.reason.as_deref(), read.refusal()), (Some("because"), None));
        }
    }
}
