//! Behaviour profiles: exactly like the kubelet, or hardened.
// I267

/// Whether lookups reproduce the kubelet's quirks.
///
/// Cache keys, credential hashes and the configuration hash are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Behaves exactly like the kubelet, including its quirks.
    Kube,
    /// Without the harmful quirks: IPv6 literals match themselves, Docker Hub credentials are not offered to
    /// `localhost`, and responses without credentials are cached only briefly.
    // I77, I140, I128
    #[default]
    Hardened,
}
