//! The steps of a program: small `Copy` values that refer to tables of the plan by index.

use super::special::{Anchor, FastBody};
use crate::cost::Rule;
use crate::syntax::ast::{FoldKind, Run};

/// Index of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepId(pub(crate) u32);

/// A range of one of the plan's tables.
pub(crate) type Range = Run;

/// Binary arithmetic operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// Ordering operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Order {
    /// The operator's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Less => "_<_",
            Order::LessEqual => "_<=_",
            Order::Greater => "_>_",
            Order::GreaterEqual => "_>=_",
        }
    }
}

/// One step of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Constant(u32),
    Variable(u32),
    Local(u32),
    /// An unresolved name; an entry of the text table.
    Unknown(u32),
    Select {
        base: StepId,
        qualifiers: Range,
    },
    /// A presence test of the last qualifier.
    Test {
        base: StepId,
        qualifiers: Range,
    },
    If {
        condition: StepId,
        yes: StepId,
        no: StepId,
    },
    And(Range),
    Or(Range),
    Not(StepId),
    Negate(StepId),
    Equal {
        left: StepId,
        right: StepId,
        negated: bool,
    },
    Compare {
        order: Order,
        left: StepId,
        right: StepId,
        rule: Rule,
    },
    Arithmetic {
        operator: Arithmetic,
        left: StepId,
        right: StepId,
        rule: Rule,
    },
    In {
        item: StepId,
        collection: StepId,
        rule: Rule,
    },
    /// Membership in a constant list of primitive values.
    InConstant {
        item: StepId,
        list: u32,
    },
    /// A match with a constant pattern: an entry of the pattern table and the pattern's size.
    Matches {
        text: StepId,
        pattern: u32,
        size: u32,
    },
    /// With `lazy`, evaluation stops at the first failed argument, and a failed call is not charged.
    Call {
        function: u32,
        overload: Option<u32>,
        args: Range,
        rule: Rule,
        lazy: bool,
    },
    /// An unknown function or one without an implementation: evaluates its arguments and fails. An entry of the
    /// text table.
    Missing {
        name: u32,
        args: Range,
        rule: Rule,
    },
    OrElse {
        optional: StepId,
        other: StepId,
    },
    OrValue {
        optional: StepId,
        other: StepId,
    },
    List {
        elements: Range,
        optional: Range,
    },
    Map {
        entries: Range,
        optional: Range,
    },
    Message {
        message: u32,
        fields: Range,
    },
    Fold(u32),
    /// Selection of one field of a variable: an entry of the text table without escapes, and its fingerprint.
    Field {
        variable: u32,
        name: u32,
        fingerprint: u64,
        general: u32,
    },
    /// `startsWith`, `endsWith` or `contains` with a constant: an entry of the constant table, and a tenth of its
    /// size.
    SubstringTest {
        anchor: Anchor,
        text: StepId,
        part: u32,
        tenth: u32,
        general: u32,
    },
}

/// The key of a qualifier.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    /// A field or constant string key: an entry of the text table, and whether it may contain an escape.
    Text(u32, bool),
    /// Another constant: an entry of the constant table.
    Constant(u32),
    /// A key computed by a step.
    Step(StepId),
}

/// A key, and whether the qualifier is optional.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    pub(crate) optional: bool,
    pub(crate) node: u32,
}

/// A comprehension or binding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop {
    pub(crate) kind: FoldKind,
    pub(crate) range: StepId,
    /// Slot of the first variable; the second uses the next slot.
    pub(crate) slot: u32,
    pub(crate) two: bool,
    pub(crate) filter: Option<StepId>,
    pub(crate) body: StepId,
    /// The body is constant, and so is the one-element list of the expansion.
    pub(crate) constant_body: bool,
    /// The fast path for the body, if any.
    pub(crate) fast_body: Option<FastBody>,
}

/// A field of a message literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldStep {
    pub(crate) name: u32,
    pub(crate) value: StepId,
    pub(crate) optional: bool,
}
