//! The functions of the authorizer. Kubernetes declares them in every environment, but no expression can obtain an
//! authorizer, so they are never called.

use super::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::value::ValueRef;

/// The type names.
pub(crate) const TYPES: &[&str] = &[
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.authorization.Decision",
];

fn unusable<'a>(_: &Call<'a>, _: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Err(NO_SUCH_OVERLOAD)
}

/// All functions.
#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("authorizer_path", "(kubernetes.authorization.Authorizer).path(string): kubernetes.authorization.PathCheck", unusable),
    ("authorizer_group", "(kubernetes.authorization.Authorizer).group(string): kubernetes.authorization.GroupCheck", unusable),
    ("authorizer_serviceaccount", "(kubernetes.authorization.Authorizer).serviceAccount(string, string): kubernetes.authorization.Authorizer", unusable),
    ("groupcheck_resource", "(kubernetes.authorization.GroupCheck).resource(string): kubernetes.authorization.ResourceCheck", unusable),
    ("resourcecheck_subresource", "(kubernetes.authorization.ResourceCheck).subresource(string): kubernetes.authorization.ResourceCheck", unusable),
    ("resourcecheck_namespace", "(kubernetes.authorization.ResourceCheck).namespace(string): kubernetes.authorization.ResourceCheck", unusable),
    ("resourcecheck_name", "(kubernetes.authorization.ResourceCheck).name(string): kubernetes.authorization.ResourceCheck", unusable),
    ("pathcheck_check", "(kubernetes.authorization.PathCheck).check(string): kubernetes.authorization.Decision", unusable),
    ("resourcecheck_check", "(kubernetes.authorization.ResourceCheck).check(string): kubernetes.authorization.Decision", unusable),
    ("decision_errored", "(kubernetes.authorization.Decision).errored(): bool", unusable),
    ("decision_error", "(kubernetes.authorization.Decision).error(): string", unusable),
    ("decision_allowed", "(kubernetes.authorization.Decision).allowed(): bool", unusable),
    ("decision_reason", "(kubernetes.authorization.Decision).reason(): string", unusable),
    ("authorizer_fieldselector", "(kubernetes.authorization.ResourceCheck).fieldSelector(string): kubernetes.authorization.ResourceCheck", unusable),
    ("authorizer_labelselector", "(kubernetes.authorization.ResourceCheck).labelSelector(string): kubernetes.authorization.ResourceCheck", unusable),
];
