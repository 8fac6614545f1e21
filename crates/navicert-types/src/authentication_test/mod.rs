//! `AuthenticationTest`: what an authentication configuration has to make of certain claims and tokens. One of our own
//! kinds; the hub type is here, its one wire version beside it.

mod v1alpha1;

use indexmap::IndexMap;

use crate::decode::Mode;
use crate::diagnostic::Diagnostics;
use crate::secret::Secret;
use crate::time::Time;
use crate::tree::{Node, Syntax};
use crate::versioned::Versions;

/// The kind's name.
pub const KIND: &str = "AuthenticationTest";

static TEST: Versions<AuthenticationTest> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: Mode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[v1alpha1::KIND],
};

/// A suite of cases for one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationTest {
    /// The file of the configuration, relative to the suite's own.
    pub configuration: String,
    /// The file of the issuers' keys, for cases with tokens; relative to the suite's own.
    pub jwks: String,
    /// Whose rules decide; absent: hardened.
    pub profile: Option<TestProfile>,
    /// What time it is in every case; absent: the first second of 2027.
    pub now: Option<Time>,
    /// The cases.
    pub cases: Vec<TestCase>,
}

/// Whose rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestProfile {
    /// As kube-apiserver decides.
    Kube,
    /// Safer.
    #[default]
    Hardened,
}

/// What is given, and what is expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestCase {
    /// One sentence: what the case shows.
    pub name: String,
    /// What is given.
    pub given: Given,
    /// What time it is in this case; absent: as in the others.
    pub now: Option<Time>,
    /// What has to come out.
    pub expect: Expectation,
}

/// What is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Claims; whoever runs the case signs them. `iss`, `aud` and `exp` may be left out.
    Claims(Claims),
    /// A token.
    Token(Secret<String>),
    /// The file of a token, relative to the suite's own.
    TokenFile(String),
}

/// The claims of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The names of those that are given.
    pub names: Vec<String>,
    /// All of them as one JSON object.
    pub json: String,
}

/// What has to come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// This user, and nothing more.
    User(ExpectedUser),
    /// A refusal.
    Rejected(ExpectedRejection),
    /// The token is nobody's.
    NoOpinion,
}

/// A whole user: what is left out has to be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedUser {
    /// The name.
    pub username: String,
    /// The UID.
    pub uid: String,
    /// The groups, in order.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: IndexMap<String, Vec<String>>,
}

/// A refusal: what is left out may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedRejection {
    /// The reason's class, such as `audience` or `claim_rule`.
    pub reason: Option<String>,
    /// The message of the rule that refuses.
    pub message: Option<String>,
    /// The field that refuses, or what it is part of: `jwt[0].claimValidationRules[1]`.
    pub at: Option<String>,
}

impl Default for Given {
    fn default() -> Self {
        Given::Claims(Claims::default())
    }
}

impl Default for Expectation {
    fn default() -> Self {
        Expectation::User(ExpectedUser::default())
    }
}

impl AuthenticationTest {
    /// Reads a file: JSON or YAML, strictly.
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
    /// Everything that is wrong, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        TEST.decode(text)
    }

    /// Reads a file that has been parsed.
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
    fn a_case_gives_one_thing_and_expects_one() {
        let good = "{name: case, claims: {}, expect: {noOpinion: true}}";
        assert_eq!(wrong(good), "");
        for (case, words) in [
            ("{name: case, claims: {}, token: t, expect: {noOpinion: true}}", "claims, token and tokenFile"),
            ("{name: case, expect: {noOpinion: true}}", "claims, token and tokenFile"),
            ("{name: case, claims: {}}", "cases[0].expect: required field is missing"),
            ("{name: case, claims: {}, expect: {}}", "one of user, rejected and noOpinion"),
            (
                "{name: case, claims: {}, expect: {user: {username: a}, noOpinion: true}}",
                "one of user, rejected",
            ),
            ("{name: case, claims: {}, expect: {user: {}}}", "cases[0].expect.user.username: required"),
            ("{name: case, claims: {}, expect: {rejected: {}}}", "reason, message or at"),
            ("{name: case, claims: [], expect: {noOpinion: true}}", "expected a mapping"),
            ("{name: case, claims: {}, expect: {rejected: {reson: x}}}", "did you mean `reason`?"),
            ("{claims: {}, expect: {noOpinion: true}}", "cases[0].name: required"),
        ] {
            assert!(wrong(case).contains(words), "{case}: {}", wrong(case));
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let given = Given::Token("canary".to_owned().into());
        assert!(!format!("{given:?}").contains("canary"));
    }
}
