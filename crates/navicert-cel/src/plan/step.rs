//! The steps of a program: small `Copy` values that refer to tables of the plan by index.

use super::special::{Body, Place};
use crate::cost::Rule;
use crate::syntax::ast::{FoldKind, Run};

/// Number of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepId(pub(crate) u32);

/// A run in one of the plan's tables.
pub(crate) type Range = Run;

/// Arithmetic of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// Order comparisons.
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
    /// A name nothing is known about; an entry of the text table.
    Unknown(u32),
    Select {
        base: StepId,
        qualifiers: Range,
    },
    /// The last qualifier is only tested for presence.
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
    /// Membership in a constant list of simple values.
    InConstant {
        item: StepId,
        list: u32,
    },
    /// A constant pattern; an entry of the pattern table and its size.
    Matches {
        text: StepId,
        pattern: u32,
        size: u32,
    },
    /// `lazy`: arguments after a failed one are not evaluated, and the call is not charged for.
    Call {
        function: u32,
        overload: Option<u32>,
        args: Range,
        rule: Rule,
        lazy: bool,
    },
    /// A function without code, or unknown: evaluates its arguments and fails. An entry of the text table.
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
    /// A selection of one field of a variable: an entry of the text table without escapes, and its fingerprint.
    Field {
        variable: u32,
        name: u32,
        fingerprint: u64,
        general: u32,
    },
    /// A call of `startsWith` and its like with a constant text: an entry of the constant table, and a tenth of its size.
    Affix {
        place: Place,
        text: StepId,
        part: u32,
        tenth: u32,
        general: u32,
    },
}

/// One step into a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    /// A field or constant text key: an entry of the text table, and whether it may hold an escape.
    Text(u32, bool),
    /// Another constant: an entry of the constant table.
    Constant(u32),
    /// A key computed by a step.
    Step(StepId),
}

/// A key and whether a missing one makes an optional.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    pub(crate) optional: bool,
    pub(crate) node: u32,
}

/// A loop or binding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop {
    pub(crate) kind: FoldKind,
    pub(crate) range: StepId,
    /// Slot of the first variable; the second has the next.
    pub(crate) slot: u32,
    pub(crate) two: bool,
    pub(crate) filter: Option<StepId>,
    pub(crate) body: StepId,
    /// The body is a constant, which makes its one-element list one too.
    pub(crate) constant_body: bool,
    /// What is quick about it.
    pub(crate) quick: Option<Body>,
}

/// A field of a message literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldStep {
    pub(crate) name: u32,
    pub(crate) value: StepId,
    pub(crate) optional: bool,
}
