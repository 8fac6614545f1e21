//! `AuthenticationTest`: expected results of an authentication configuration for given claims and tokens. A kind defined
//! by navicert; this module has the hub type, `v1alpha1` its only wire version.

mod v1alpha1;

use indexmap::IndexMap;

use crate::decode::DecodeMode;
use crate::diagnostic::Diagnostics;
use crate::secret::Secret;
use crate::time::Time;
use crate::tree::{Node, Syntax};
use crate::versioned::Versions;

/// The kind's name.
pub const KIND: &str = "AuthenticationTest";

static TEST: Versions<AuthenticationTest> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[v1alpha1::KIND],
};

/// A suite of cases for one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthenticationTest {
    /// Path of the configuration, relative to the suite file.
    pub configuration: String,
    /// Path of the issuers' key set, for cases with tokens; relative to the suite file.
    pub jwks: String,
    /// The rule profile; hardened if absent.
    pub profile: Option<TestProfile>,
    /// Current time of every case; the first second of 2027 if absent.
    pub now: Option<Time>,
    /// The cases.
    pub cases: Vec<TestCase>,
}

/// The rule profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestProfile {
    /// The rules of kube-apiserver.
    Kube,
    /// Stricter rules.
    #[default]
    Hardened,
}

/// An input and its expected result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestCase {
    /// One sentence that describes the case.
    pub name: String,
    /// The input.
    pub input: TestInput,
    /// Current time of this case; the suite's if absent.
    pub now: Option<Time>,
    /// The expected result.
    pub expect: Expectation,
}

/// The input of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestInput {
    /// Claims, which the test runner signs. `iss`, `aud` and `exp` are optional.
    Claims(TestClaims),
    /// A token.
    Token(Secret<String>),
    /// Path of a token file, relative to the suite file.
    TokenFile(String),
}

/// The claims of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestClaims {
    /// Names of the given claims.
    pub names: Vec<String>,
    /// All claims as one JSON object.
    pub json: String,
}

/// The expected result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Exactly this user.
    User(ExpectedUser),
    /// A rejection.
    Rejected(ExpectedRejection),
    /// No authenticator has an opinion about the token.
    NoOpinion,
}

/// An expected user; omitted fields must be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpectedUser {
    /// The name.
    pub username: String,
    /// The UID.
    pub uid: String,
    /// The groups in order.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: IndexMap<String, Vec<String>>,
}

/// An expected rejection; omitted fields match anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpectedRejection {
    /// The reason's class, such as `audience` or `claim_rule`.
    pub reason: Option<String>,
    /// The message of the rejecting rule.
    pub message: Option<String>,
    /// The rejecting field or one of its ancestors, such as `jwt[0].claimValidationRules[1]`.
    pub at: Option<String>,
}

impl Default for TestInput {
    fn default() -> Self {
        TestInput::Claims(TestClaims::default())
    }
}

impl Default for Expectation {
    fn default() -> Self {
        Expectation::User(ExpectedUser::default())
    }
}

impl AuthenticationTest {
    /// Parses a JSON or YAML file strictly.
    ///
    /// ```
    /// use navicert_types::authentication_test::{AuthenticationTest, Expectation};
    ///
    /// let suite = AuthenticationTest::parse(b"
    /// apiVersion: navicert/v1alpha1
    /// kind: AuthenticationTest
    /// configuration: authn.yaml
    /// cases:
    /// - name: ann signs in
    ///   claims: {sub: ann}
    ///   expect: {user: {username: 'oidc:ann'}}
    /// ").unwrap();
    /// let Expectation::User(user) = &suite.cases[0].expect else { panic!() };
    /// assert_eq!(user.username, "oidc:ann");
    /// ```
    ///
    /// # Errors
    /// Every error, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        TEST.decode(text)
    }

    /// Decodes a parsed file.
    ///
    /// # Errors
    /// As [`AuthenticationTest::parse`].
    pub fn from_tree(tree: &Node) -> Result<Self, Diagnostics> {
        TEST.decode_tree(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(case: &str) -> String {
        let text = format!(
            "apiVersion: navicert/v1alpha1\nkind: AuthenticationTest\nconfiguration: a.yaml\ncases:\n- {case}\n"
        );
        AuthenticationTest::parse(text.as_bytes()).map_or_else(|wrong| wrong.to_string(), |_| String::new())
    }

    #[test]
    fn case_has_exactly_one_input_and_one_expectation() {
        let good = "{name: case, claims: {}, expect: {noOpinion: true}}";
        assert_eq!(wrong(good), "");
        for (case, words) in [
            ("{name: case, claims: {}, token: t, expect: {noOpinion: true}}", "claims, token and tokenFile"),
            ("{name: case, expect: {noOpinion: true}}", "claims, token and tokenFile"),
            ("{name: case, claims: {}}", "cases[0].expect: missing required field"),
            ("{name: case, claims: {}, expect: {}}", "one of user, rejected and noOpinion"),
            (
                "{name: case, claims: {}, expect: {user: {username: a}, noOpinion: true}}",
                "one of user, rejected",
            ),
            (
                "{name: case, claims: {}, expect: {user: {}}}",
                "cases[0].expect.user.username: missing required field",
            ),
            ("{name: case, claims: {}, expect: {rejected: {}}}", "reason, message and at"),
            ("{name: case, claims: [], expect: {noOpinion: true}}", "expected a mapping"),
            ("{name: case, claims: {}, expect: {rejected: {reson: x}}}", "did you mean `reason`?"),
            ("{claims: {}, expect: {noOpinion: true}}", "cases[0].name: missing required field"),
        ] {
            assert!(wrong(case).contains(words), "{case}: {}", wrong(case));
        }
    }

    #[test]
    fn debug_does_not_show_the_token() {
        let given = TestInput::Token("canary".to_owned().into());
        assert!(!format!("{given:?}").contains("canary"));
    }
}
