//! Checks the proxy's permissions with `SelfSubjectAccessReview` before a user needs them, and reports missing ones
//! as RBAC rules.
// S270, B12

use std::collections::HashMap;
use std::fmt;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use navicert_authn::reloadable::MappedAttributes;
use navicert_client::front_proxy::{FrontProxyTrust, PROBE_USER, SharedAuthority};
use navicert_client::transport::Transport;
use navicert_types::token_review::UserInfo;

use super::identity_headers::{AllowedNames, HeaderNames, encode};
use super::permission::{Permission, PermissionTarget, PermissionVerb};
use super::rbac::rule_lines;
use super::required_permissions::{
    ConstrainedPermissions, ImpersonationWay, RequiredPermissions, SubjectKind, SubjectPermissions,
};
use super::reviews::{
    AccessReviewError, CONSTRAINED_IMPERSONATION_SINCE, self_access_review, self_subject_review,
    server_version,
};
use super::settings::{IdentityMode, ProxySettings};
use crate::user_ref::{ANONYMOUS, UserRef};

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How the proxy acts for others, as far as its permissions suffice.
    pub access: Access,
    /// What the proxy lacks to serve users of every kind.
    pub missing: Option<Missing>,
}

/// How the proxy acts for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// The way of impersonation that the rules for users take, complete or not; `None` for a front proxy, and if there are no
    /// users.
    pub users: Option<ImpersonationWay>,
    /// The same for service accounts whose token was reviewed; `None` if none is impersonated.
    pub service_accounts: Option<ImpersonationWay>,
    /// Kinds of users whose requests cannot all be forwarded.
    pub limits: Vec<RequestLimit>,
}

/// Which requests of users of one kind can be forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestLimit {
    kind: SubjectKind,
    servable: Vec<Permission>,
    unservable: Vec<Permission>,
}

/// What the proxy lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Permissions.
    Permissions(Vec<Permission>),
    /// The API server does not accept identity headers from the proxy's certificate.
    Trust(FrontProxyTrust),
    /// The API server is too old to receive a UID.
    // S266
    Uid,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Permissions(permissions) => {
                f.write_str("the proxy's account lacks permissions; add these rules to its ClusterRole:\n")?;
                f.write_str(&rule_lines(permissions))
            }
            // S228
            Missing::Trust(trust) => {
                trust.fmt(f)?;
                trust.to_do().map_or(Ok(()), |to_do| write!(f, "; {to_do}"))
            }
            Missing::Uid => {
                f.write_str("the API server is too old to receive a UID, and `requireUid` is set")
            }
        }
    }
}

impl fmt::Display for RequestLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = match self.kind {
            SubjectKind::Users => "users",
            SubjectKind::ReviewedServiceAccounts | SubjectKind::MappedServiceAccounts => "service accounts",
            SubjectKind::MappedNodes => "nodes",
        };
        let (servable, unservable) = (verbs(&self.servable), verbs(&self.unservable));
        write!(f, "requests of {users} can be forwarded for {servable}, but not for {unservable}; ")?;
        f.write_str("to forward them, add these rules to the proxy's ClusterRole:\n")?;
        f.write_str(&rule_lines(&self.unservable))
    }
}

/// The verbs of requests that these permissions permit.
fn verbs(permissions: &[Permission]) -> String {
    let verb = |permission: &Permission| match (&permission.verb, &permission.target) {
        (PermissionVerb::ImpersonateOn(_, verb), PermissionTarget::Resource(_)) => verb.to_string(),
        (PermissionVerb::ImpersonateOn(_, verb), PermissionTarget::Path(_)) => {
            format!("{verb} of paths such as /version and /apis")
        }
        (verb, _) => verb.to_string(),
    };
    permissions.iter().map(verb).collect::<Vec<_>>().join(", ")
}

/// Checks all permissions with the API server.
///
/// # Errors
/// [`AccessReviewError`]: a review failed.
pub(crate) async fn check(
    upstream: &Transport,
    settings: &ProxySettings,
    mapped: &MappedAttributes,
    is_anonymous: bool,
) -> Result<Verdict, AccessReviewError> {
    let required = RequiredPermissions::new(settings, mapped, is_anonymous);
    let mut reviews = Reviews::new(upstream);
    let mut missing = reviews.missing(&required.own).await?;
    let mut access = Access::default();
    for subject in &required.subjects {
        let found = reviews.subject_access(subject).await?;
        match subject.kind {
            SubjectKind::Users => access.users = Some(found.way),
            SubjectKind::ReviewedServiceAccounts => access.service_accounts = Some(found.way),
            SubjectKind::MappedServiceAccounts | SubjectKind::MappedNodes => {}
        }
        missing.extend(found.missing);
        access.limits.extend(found.limit);
    }
    let missing = match missing.is_empty() {
        false => Some(Missing::Permissions(missing)),
        true => check_identity_headers(upstream, settings).await?,
    };
    Ok(Verdict { access, missing })
}

/// Whether the API server takes the headers: from this certificate, and the UID.
async fn check_identity_headers(
    upstream: &Transport,
    settings: &ProxySettings,
) -> Result<Option<Missing>, AccessReviewError> {
    let (since, headers) = match &settings.mode {
        IdentityMode::Impersonation => ((1, 22), Vec::new()),
        IdentityMode::RequestHeader(names) => {
            let headers = probe_headers(names);
            match authenticated_as(upstream, &headers).await? {
                Some(user) if user == PROBE_USER => {}
                Some(user) => return Ok(Some(Missing::Trust(FrontProxyTrust::HeadersIgnored { user }))),
                None => return Ok(Some(Missing::Trust(FrontProxyTrust::Rejected))),
            }
            ((1, 32), headers)
        }
    };
    let is_old = settings.require_uid && server_version(upstream, &headers).await? < since;
    Ok(is_old.then_some(Missing::Uid))
}

/// Whether the API server accepts a front proxy's certificate as a user's, too.
///
/// # Errors
/// [`AccessReviewError`]: the API server did not say.
// V7
pub(crate) async fn shared_authority(
    upstream: &Transport,
    settings: &ProxySettings,
) -> Result<Option<SharedAuthority>, AccessReviewError> {
    let IdentityMode::RequestHeader(names) = &settings.mode else { return Ok(None) };
    let user = authenticated_as(upstream, &[]).await?;
    let Some(user) = user.filter(|user| user != ANONYMOUS) else { return Ok(None) };
    let version = server_version(upstream, &probe_headers(names)).await.ok();
    Ok(Some(SharedAuthority { user, version }))
}

/// Headers that name a user without permissions of its own.
fn probe_headers(names: &HeaderNames) -> Vec<(HeaderName, HeaderValue)> {
    let probe = UserInfo { username: PROBE_USER.to_owned(), ..UserInfo::default() };
    encode(UserRef::from(&probe), names, AllowedNames::default()).unwrap_or_default()
}

/// The user of a request with these headers; `None` if the API server authenticates none.
async fn authenticated_as(
    upstream: &Transport,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<Option<String>, AccessReviewError> {
    match self_subject_review(upstream, headers).await {
        Err(AccessReviewError::UnexpectedResponse { status: StatusCode::UNAUTHORIZED, .. }) => Ok(None),
        reviewed => reviewed.map(|user| Some(navicert_types::redact::line(&user).into_owned())),
    }
}

/// What the proxy may do for users of one kind.
struct SubjectAccess {
    /// The way that the rules take.
    way: ImpersonationWay,
    missing: Vec<Permission>,
    limit: Option<RequestLimit>,
}

impl SubjectAccess {
    fn lacking(way: ImpersonationWay, missing: Vec<Permission>) -> Self {
        SubjectAccess { way, missing, limit: None }
    }
}

/// The reviews of one check; each permission is asked for once.
struct Reviews<'t> {
    upstream: &'t Transport,
    known: HashMap<Permission, bool>,
    is_constrained_supported: Option<bool>,
    /// Rules of constrained impersonation exist for users of another kind.
    has_constrained: bool,
}

impl<'t> Reviews<'t> {
    fn new(upstream: &'t Transport) -> Self {
        Reviews { upstream, known: HashMap::new(), is_constrained_supported: None, has_constrained: false }
    }

    /// Those of the permissions that are not granted.
    async fn missing(&mut self, permissions: &[Permission]) -> Result<Vec<Permission>, AccessReviewError> {
        let mut missing = Vec::new();
        for permission in permissions {
            let is_granted = match self.known.get(permission) {
                Some(known) => *known,
                None => self_access_review(self.upstream, permission).await?,
            };
            self.known.insert(permission.clone(), is_granted);
            if !is_granted {
                missing.push(permission.clone());
            }
        }
        Ok(missing)
    }

    async fn subject_access(
        &mut self,
        subject: &SubjectPermissions,
    ) -> Result<SubjectAccess, AccessReviewError> {
        let lacking = self.missing(&subject.legacy).await?;
        let legacy = |lacking| Ok(SubjectAccess::lacking(ImpersonationWay::Legacy, lacking));
        let Some(ConstrainedPermissions { identity, requests }) = &subject.constrained else {
            return legacy(lacking);
        };
        // A rule with the verb `*` grants the newer verbs on servers that do not know them, too.
        if lacking.is_empty() || !self.is_constrained_supported().await? {
            return legacy(lacking);
        }
        let (unnamed, unservable) = (self.missing(identity).await?, self.missing(requests).await?);
        self.has_constrained |= unnamed.len() < identity.len() || unservable.len() < requests.len();
        let way = ImpersonationWay::Constrained;
        if unnamed.is_empty() && unservable.len() < requests.len() {
            let servable = requests.iter().filter(|one| !unservable.contains(one)).cloned().collect();
            let limit = RequestLimit { kind: subject.kind, servable, unservable };
            let limit = Some(limit).filter(|limit| !limit.unservable.is_empty());
            return Ok(SubjectAccess { way, missing: Vec::new(), limit });
        }
        // What is missing in the way that the existing rules take; in the legacy one, which every version has, if
        // there are none.
        let has_legacy_name = subject.legacy.first().is_some_and(|name| !lacking.contains(name));
        if !self.has_constrained || has_legacy_name {
            return legacy(lacking);
        }
        Ok(SubjectAccess::lacking(way, unnamed.into_iter().chain(unservable).collect()))
    }

    async fn is_constrained_supported(&mut self) -> Result<bool, AccessReviewError> {
        let is_supported = match self.is_constrained_supported {
            Some(known) => known,
            None => server_version(self.upstream, &[]).await? >= CONSTRAINED_IMPERSONATION_SINCE,
        };
        self.is_constrained_supported = Some(is_supported);
        Ok(is_supported)
    }
}
