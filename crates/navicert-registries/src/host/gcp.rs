//! Hosts of Google Artifact Registry and Container Registry.

use super::Host;

/// Whether a host is one of Google's registries: `gcr.io`, one label under it, one label under `pkg.dev`, or
/// `container.cloud.google.com`. Unlike upstream, no other host gets the node's token.
// I188
pub(crate) fn is_google(host: &Host) -> bool {
    let one_label = |rest: &str| !rest.contains('.');
    matches!(host.name(), "gcr.io" | "container.cloud.google.com")
        || host.strip_domain_suffix("gcr.io").is_some_and(one_label)
        || host.strip_domain_suffix("pkg.dev").is_some_and(one_label)
}
