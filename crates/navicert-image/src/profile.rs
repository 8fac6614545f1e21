//! Whose behaviour: the kubelet's to the letter, or the kubelet's with its traps removed.
// I267

/// How a lookup treats the places where the kubelet surprises people.
///
/// Cache keys, credential hashes and the configuration hash are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Exactly as the kubelet does, quirks included.
    Kube,
    /// The same without the quirks that hurt: IPv6 literals match themselves, Docker Hub credentials are not
    /// offered to `localhost`, an answer without credentials is remembered only briefly.
    // I77, I140, I128
    #[default]
    Hardened,
}
