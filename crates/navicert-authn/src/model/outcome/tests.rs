use std::collections::BTreeSet;

use navicert_cel::{
    ClaimError, EvalError, EvalErrorKind, EvaluationError, InternalFault, InvalidArgument, Limit, Misuse,
    Operand, Span, Untrusted,
};

use super::*;

const CANARY: &str = "canary-7f3a";

/// Names every kind of error: a new one does not compile without a name here, and fails without a sample below.
macro_rules! kinds {
    ($($name:ident: $kind:pat),* $(,)?) => {
        const KINDS: &[&str] = &[$(stringify!($name)),*];

        fn name(kind: &EvalErrorKind) -> &'static str {
            match kind {
                $($kind => stringify!($name)),*
            }
        }
    };
}

kinds! {
    NoSuchOverload: EvalErrorKind::NoSuchOverload { .. },
    NoSuchOperand: EvalErrorKind::NoSuchOperand { .. },
    NoSuchLiteralKey: EvalErrorKind::NoSuchKey(Operand::Literal(_)),
    NoSuchComputedKey: EvalErrorKind::NoSuchKey(Operand::Computed(_)),
    LiteralIndex: EvalErrorKind::IndexOutOfBounds(Operand::Literal(_)),
    ComputedIndex: EvalErrorKind::IndexOutOfBounds(Operand::Computed(_)),
    IndexType: EvalErrorKind::IndexType { .. },
    InvalidIndex: EvalErrorKind::InvalidIndex(_),
    NoSuchAttribute: EvalErrorKind::NoSuchAttribute(_),
    DivisionByZero: EvalErrorKind::DivisionByZero,
    ModulusByZero: EvalErrorKind::ModulusByZero,
    IntOverflow: EvalErrorKind::IntOverflow,
    UintOverflow: EvalErrorKind::UintOverflow,
    TimestampOverflow: EvalErrorKind::TimestampOverflow,
    NoValue: EvalErrorKind::NoValue,
    Conversion: EvalErrorKind::Conversion { .. },
    NotIterable: EvalErrorKind::NotIterable { .. },
    Misuse: EvalErrorKind::Misuse(_),
    InvalidArgument: EvalErrorKind::InvalidArgument { .. },
    ClaimOutOfRange: EvalErrorKind::Claim { error: ClaimError::OutOfRange(_), .. },
    ClaimTooDeep: EvalErrorKind::Claim { error: ClaimError::TooDeep, .. },
    ClaimPending: EvalErrorKind::Claim { error: ClaimError::Pending, .. },
    ClaimUnavailable: EvalErrorKind::Claim { error: ClaimError::Unavailable(_), .. },
    Limit: EvalErrorKind::Limit(_),
    Internal: EvalErrorKind::Internal(_),
}

/// One error of each kind; whatever can come from a claim is the canary.
fn samples() -> Vec<EvalErrorKind> {
    let canary = || Untrusted::new(CANARY);
    let claim = |error| EvalErrorKind::Claim { claim: "groups".to_owned(), error };
    vec![
        EvalErrorKind::NoSuchOverload { function: "_+_".to_owned(), arguments: String::new() },
        EvalErrorKind::NoSuchOperand { operator: "_+_" },
        EvalErrorKind::NoSuchKey(Operand::Literal("hd".to_owned())),
        EvalErrorKind::NoSuchKey(Operand::Computed(canary())),
        EvalErrorKind::IndexOutOfBounds(Operand::Literal("7".to_owned())),
        EvalErrorKind::IndexOutOfBounds(Operand::Computed(canary())),
        EvalErrorKind::IndexType { type_name: "string".to_owned() },
        EvalErrorKind::InvalidIndex(Operand::Computed(canary())),
        EvalErrorKind::NoSuchAttribute("claims".to_owned()),
        EvalErrorKind::DivisionByZero,
        EvalErrorKind::ModulusByZero,
        EvalErrorKind::IntOverflow,
        EvalErrorKind::UintOverflow,
        EvalErrorKind::TimestampOverflow,
        EvalErrorKind::NoValue,
        EvalErrorKind::Conversion { to: "int" },
        EvalErrorKind::NotIterable { go_type: "types.String" },
        EvalErrorKind::Misuse(Misuse::NotOrdered),
        EvalErrorKind::InvalidArgument { argument: InvalidArgument::TimeZone, message: canary() },
        claim(ClaimError::OutOfRange(canary())),
        claim(ClaimError::TooDeep),
        claim(ClaimError::Pending),
        claim(ClaimError::Unavailable("failed to reach the source of a distributed claim")),
        EvalErrorKind::Limit(Limit::Cost),
        EvalErrorKind::Internal(InternalFault::Constant),
    ]
}

fn rejection(kind: EvalErrorKind) -> Rejection {
    let path = FieldPath::root().field("jwt").index(0);
    let error = EvaluationError { error: EvalError { kind, span: Span::default() }, cost: 1 };
    let refusal = Refusal::Evaluation {
        path: path.clone(),
        text: "claims.m[claims.k]".to_owned(),
        purpose: Purpose::Mapping,
        error: Box::new(error),
    };
    Rejection { authenticator: path, refusal }
}

// H16
#[test]
fn no_kind_of_error_prints_a_value_unless_asked() {
    let mut seen = BTreeSet::new();
    for kind in samples() {
        seen.insert(name(&kind));
        assert_eq!(kind.exposed().contains(CANARY), kind.has_values(), "{kind}");
        let rejection = rejection(kind);
        let outcome = AuthnOutcome::Rejected(Box::new(rejection.clone()));
        for printed in [
            navicert_types::error_chain(&rejection),
            format!("{rejection:?}"),
            format!("{:#}", rejection.refusal),
            format!("{outcome:#?}"),
        ] {
            assert!(!printed.contains(CANARY), "{printed}");
        }
    }
    assert_eq!(
        seen.len(),
        KINDS.len(),
        "missing sample of {:?}",
        KINDS.iter().filter(|kind| !seen.contains(*kind))
    );
}

// H16
#[test]
fn printed_errors_quote_the_expression_but_no_claims() {
    for (kind, printed) in [
        (EvalErrorKind::NoSuchKey(Operand::Literal("hd".to_owned())), "no such key: hd"),
        (EvalErrorKind::NoSuchKey(Operand::Computed(Untrusted::new("x"))), "no such key: …"),
        (EvalErrorKind::IndexOutOfBounds(Operand::Computed(Untrusted::new("7"))), "index out of bounds: …"),
        (
            EvalErrorKind::InvalidArgument {
                argument: InvalidArgument::TimeZone,
                message: Untrusted::new("unknown time zone x"),
            },
            "unknown time zone",
        ),
    ] {
        let expected = format!("jwt[0]: expression 'claims.m[claims.k]' resulted in error: {printed}");
        assert_eq!(navicert_types::error_chain(&rejection(kind)), expected);
    }
}

#[test]
fn limits_and_internal_faults_have_their_own_classes() {
    for (kind, class) in [
        (EvalErrorKind::Limit(Limit::Cost), RefusalClass::Cost),
        (EvalErrorKind::Internal(InternalFault::Local), RefusalClass::Internal),
        (EvalErrorKind::DivisionByZero, RefusalClass::Mapping),
    ] {
        assert_eq!(rejection(kind).refusal.class(), class);
    }
}
