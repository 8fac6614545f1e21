//! `TokenReview` of `authentication.k8s.io`. `v1` and `v1beta1` have the same fields and share one set of types; the
//! version is kept beside them because a response must have the version of its request.
// S212

mod request;
mod response;

pub use request::{TokenReviewRequest, TokenReviewRequestError};
pub use response::{TokenReviewResponse, TokenReviewStatus, UserInfo};

/// The API group.
pub const GROUP: &str = "authentication.k8s.io";
/// The kind's name.
pub const KIND: &str = "TokenReview";

/// A version of `TokenReview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenReviewVersion {
    /// `authentication.k8s.io/v1`
    V1,
    /// `authentication.k8s.io/v1beta1`: kube-apiserver's default for webhooks.
    // S209
    V1beta1,
}

impl TokenReviewVersion {
    /// Both versions.
    pub const ALL: [TokenReviewVersion; 2] = [TokenReviewVersion::V1, TokenReviewVersion::V1beta1];

    /// The `apiVersion` text.
    pub const fn api_version(self) -> &'static str {
        match self {
            TokenReviewVersion::V1 => "authentication.k8s.io/v1",
            TokenReviewVersion::V1beta1 => "authentication.k8s.io/v1beta1",
        }
    }

    /// The version of an `apiVersion`.
    pub fn from_api_version(api_version: &str) -> Option<Self> {
        TokenReviewVersion::ALL.into_iter().find(|version| version.api_version() == api_version)
    }
}
