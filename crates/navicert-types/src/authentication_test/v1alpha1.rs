//! `navicert/v1alpha1`.

use super::{
    AuthenticationTest, Expectation, ExpectedRejection, ExpectedUser, TestCase, TestClaims, TestInput,
    TestProfile,
};
use crate::decode::{Decode, Decoder, Fields};
use crate::diagnostic::DiagnosticKind;
use crate::secret::Secret;
use crate::tree::Node;
use crate::versioned::Kind;

pub(super) const KIND: Kind<AuthenticationTest> =
    Kind { api_version: "navicert/v1alpha1", kind: super::KIND, decode: AuthenticationTest::decode };

impl Decode for AuthenticationTest {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AuthenticationTest {
            configuration: fields.required("configuration"),
            jwks: fields.default("jwks"),
            profile: fields.optional("profile"),
            now: fields.optional("now"),
            cases: fields.required("cases"),
        })
    }
}

impl Decode for TestProfile {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.one_of(node, &[("kube", TestProfile::Kube), ("hardened", TestProfile::Hardened)])
    }
}

impl Decode for TestCase {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| TestCase {
            name: fields.required("name"),
            input: decode_input(fields, node),
            now: fields.optional("now"),
            expect: fields.required("expect"),
        })
    }
}

fn decode_input(fields: &mut Fields<'_>, case: &Node) -> TestInput {
    let claims: Option<TestClaims> = fields.optional("claims");
    let token: Option<Secret<String>> = fields.optional("token");
    let file: Option<String> = fields.optional("tokenFile");
    let has = |name: &str| case.as_mapping().is_some_and(|mapping| mapping.last(name).is_some());
    if ["claims", "token", "tokenFile"].into_iter().filter(|name| has(name)).count() != 1 {
        report(fields, case, "expected exactly one of claims, token and tokenFile");
    }
    match (claims, token, file) {
        (_, Some(token), _) => TestInput::Token(token),
        (_, _, Some(file)) => TestInput::TokenFile(file),
        (claims, ..) => TestInput::Claims(claims.unwrap_or_default()),
    }
}

impl Decode for TestClaims {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let Some(mapping) = node.as_mapping() else {
            decoder.report_wrong_type(node, "a mapping");
            return None;
        };
        let names = mapping.entries().iter().map(|entry| entry.key.clone()).collect();
        Some(TestClaims { names, json: node.to_json() })
    }
}

impl Decode for Expectation {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            let user: Option<ExpectedUser> = fields.optional("user");
            let rejected: Option<ExpectedRejection> = fields.optional("rejected");
            let no_opinion: bool = fields.default("noOpinion");
            let count =
                usize::from(user.is_some()) + usize::from(rejected.is_some()) + usize::from(no_opinion);
            let has = |name: &str| node.as_mapping().is_some_and(|mapping| mapping.last(name).is_some());
            if count != 1 && !(count == 0 && (has("user") || has("rejected"))) {
                report(fields, node, "expected exactly one of user, rejected and noOpinion");
            }
            match (user, rejected) {
                (Some(user), _) => Expectation::User(user),
                (_, Some(rejected)) => Expectation::Rejected(rejected),
                _ => Expectation::NoOpinion,
            }
        })
    }
}

impl Decode for ExpectedUser {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ExpectedUser {
            username: fields.required("username"),
            uid: fields.default("uid"),
            groups: fields.default("groups"),
            extra: fields.default("extra"),
        })
    }
}

impl Decode for ExpectedRejection {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            let rejection = ExpectedRejection {
                reason: fields.optional("reason"),
                message: fields.optional("message"),
                at: fields.optional("at"),
            };
            if rejection == ExpectedRejection::default() {
                report(fields, node, "expected at least one of reason, message and at");
            }
            rejection
        })
    }
}

fn report(fields: &mut Fields<'_>, node: &Node, message: &str) {
    fields.decoder().report(node.span, DiagnosticKind::InvalidValue, message.to_owned(), None);
}
