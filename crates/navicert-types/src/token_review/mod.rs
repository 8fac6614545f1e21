//! `TokenReview` of `authentication.k8s.io`: whose token is this? `v1` and `v1beta1` have the same fields, so one set of types
//! serves both; the version is kept beside them, because an answer has to come in the version of its question (S212).

mod answer;
mod question;

pub use answer::{Answer, Status, UserInfo};
pub use question::{Question, QuestionError};

/// The API group.
pub const GROUP: &str = "authentication.k8s.io";
/// The kind's name.
pub const KIND: &str = "TokenReview";

/// A version of `TokenReview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `authentication.k8s.io/v1`
    V1,
    /// `authentication.k8s.io/v1beta1`: kube-apiserver's default for webhooks (S209).
    V1beta1,
}

impl Version {
    /// Both.
    pub const ALL: [Version; 2] = [Version::V1, Version::V1beta1];

    /// As in `apiVersion`.
    pub const fn api_version(self) -> &'static str {
        match self {
            Version::V1 => "authentication.k8s.io/v1",
            Version::V1beta1 => "authentication.k8s.io/v1beta1",
        }
    }

    /// The version of an `apiVersion`.
    pub fn of(api_version: &str) -> Option<Self> {
        Version::ALL.into_iter().find(|version| version.api_version() == api_version)
    }
}
