//! What differs between the expression languages of Kubernetes versions: when functions were added, and one row of facts per
//! version of cel-go. The code that implements a behaviour reads its fact; no other place compares versions.
// V5

use crate::check::Library;
use crate::check::declaration::Declaration;
use crate::functions;

/// Something that a Kubernetes version added to its environments.
#[derive(Clone, Copy)]
pub(crate) enum Addition {
    /// A whole library.
    Library(Library),
    /// Functions of a library that exists already.
    Functions(&'static [Declaration]),
}

/// What the environments have, with the minor version that added it.
pub(crate) const ADDITIONS: [(u16, Addition); 16] = [
    (0, Addition::Library(Library::Standard)),
    (0, Addition::Library(Library::Strings)),
    (0, Addition::Library(Library::KubernetesLists)),
    (0, Addition::Library(Library::Regex)),
    (0, Addition::Library(Library::Url)),
    (27, Addition::Library(Library::Authorization)),
    (28, Addition::Library(Library::Optional)),
    (28, Addition::Library(Library::Quantity)),
    (29, Addition::Library(Library::Sets)),
    (30, Addition::Library(Library::Network)),
    (31, Addition::Library(Library::Format)),
    (32, Addition::Library(Library::TwoVariables)),
    (33, Addition::Library(Library::Semver)),
    (34, Addition::Library(Library::Lists)),
    (37, Addition::Functions(functions::lists::INCLUDES)),
    (38, Addition::Functions(functions::kubernetes::NETWORK_IS_MASK)),
];

/// What the expression language does where versions of cel-go differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LanguageFacts {
    /// Field names may be written in backquotes.
    pub(crate) quoted_fields: bool,
    /// `duration(int)` counts nanoseconds.
    pub(crate) duration_of_int: bool,
    /// `startsWith` and `endsWith` cost as much as the affix is long, else as the whole string.
    pub(crate) affix_costs_by_affix: bool,
    /// `matches(text, pattern)` costs as much as `text.matches(pattern)`, else one unit.
    pub(crate) global_matches_costs: bool,
    /// `lists.range` rejects negative and huge sizes.
    pub(crate) range_is_bounded: bool,
    /// `or` and `orValue` reject a receiver that is no optional, else they return it.
    pub(crate) or_needs_optional: bool,
    /// The minutes of a time zone offset are at most 59.
    pub(crate) zone_minutes_are_bounded: bool,
    /// The position of an empty substring is at most the length of the text.
    pub(crate) empty_index_is_clamped: bool,
    /// The variable of a comprehension hides qualified names that start with its name.
    pub(crate) variables_hide_names: bool,
}

/// Kubernetes 1.36 and earlier.
static CEL_GO_0_26: LanguageFacts = LanguageFacts {
    quoted_fields: false,
    duration_of_int: true,
    affix_costs_by_affix: false,
    global_matches_costs: false,
    range_is_bounded: false,
    or_needs_optional: false,
    zone_minutes_are_bounded: false,
    empty_index_is_clamped: false,
    variables_hide_names: false,
};

/// Kubernetes 1.37 and later.
static CEL_GO_0_29: LanguageFacts = LanguageFacts {
    quoted_fields: true,
    duration_of_int: false,
    affix_costs_by_affix: true,
    global_matches_costs: true,
    range_is_bounded: true,
    or_needs_optional: true,
    zone_minutes_are_bounded: true,
    empty_index_is_clamped: true,
    variables_hide_names: true,
};

/// Minor versions with another language than the one before, newest first.
static LANGUAGES: [(u16, &LanguageFacts); 2] = [(37, &CEL_GO_0_29), (0, &CEL_GO_0_26)];

/// What differs between the expression languages of Kubernetes versions, and what 1.N does: the same subjects in the same order
/// for every version.
pub fn language_rows(minor: u16) -> Vec<(&'static str, &'static str)> {
    let facts = LanguageFacts::for_minor(minor);
    let name = |functions: &[Declaration]| functions.first().map(|(id, ..)| *id);
    let has = |functions: &[Declaration]| {
        let is_it = |addition: &Addition| match addition {
            Addition::Functions(known) => name(known) == name(functions),
            Addition::Library(_) => false,
        };
        ADDITIONS.iter().any(|(since, addition)| *since <= minor && is_it(addition))
    };
    let yes = |is: bool| if is { "yes" } else { "no" };
    vec![
        ("`includes`", yes(has(functions::lists::INCLUDES))),
        ("`cidr.isMask`", yes(has(functions::kubernetes::NETWORK_IS_MASK))),
        ("field names in backquotes", yes(facts.quoted_fields)),
        ("`duration(int)`", yes(facts.duration_of_int)),
        (
            "cost of `startsWith` and `endsWith`",
            if facts.affix_costs_by_affix {
                "by the length of the affix"
            } else {
                "by the length of the text"
            },
        ),
        (
            "cost of `matches(text, pattern)`",
            if facts.global_matches_costs { "as `text.matches(pattern)`" } else { "one unit" },
        ),
        (
            "`lists.range` of a negative or huge size",
            if facts.range_is_bounded { "an error" } else { "an empty list, or as many elements" },
        ),
        (
            "`or` and `orValue` of a value that is no optional",
            if facts.or_needs_optional { "an error" } else { "the value" },
        ),
        ("minutes of a time zone offset", if facts.zone_minutes_are_bounded { "0 to 59" } else { "any" }),
        (
            "`indexOf` of an empty text beyond the end",
            if facts.empty_index_is_clamped { "the length of the text" } else { "the offset" },
        ),
        (
            "variable of a comprehension named like the start of a type name",
            if facts.variables_hide_names { "hides the type" } else { "does not hide the type" },
        ),
    ]
}

impl LanguageFacts {
    /// The language of the newest version.
    pub(crate) const NEWEST: &'static LanguageFacts = &CEL_GO_0_29;

    /// The language of Kubernetes 1.N.
    pub(crate) fn for_minor(minor: u16) -> &'static LanguageFacts {
        let found = LANGUAGES.iter().find(|(since, _)| *since <= minor);
        found.map_or(LanguageFacts::NEWEST, |(_, facts)| facts)
    }
}

#[cfg(test)]
mod tests {
    use crate::kubernetes::claims_environment_of;
    use crate::program::Bindings;
    use crate::value::Arena;

    /// The cost of an expression, or `None` if it does not compile or fails.
    fn cost(minor: u16, expr: &str) -> Option<u64> {
        let program = claims_environment_of(minor).compile(expr).ok()?;
        let arena = Arena::new();
        program.evaluate(&arena, &Bindings::new()).ok().map(|found| found.cost)
    }

    // V5
    #[test]
    fn functions_exist_since_their_version() {
        for (expr, since) in [
            ("[1].sort() == [1]", 34),
            ("[1].includes(1)", 37),
            ("{'a-b': 1}.`a-b` == 1", 37),
            ("cidr('10.0.0.0/8').isMask()", 38),
        ] {
            for minor in 34..=38 {
                assert_eq!(cost(minor, expr).is_some(), minor >= since, "1.{minor}: {expr}");
            }
        }
        assert!(cost(36, "duration(5) == duration('5ns')").is_some());
        assert!(cost(37, "duration(5) == duration('5ns')").is_none());
        assert!(cost(36, "lists.range(-1) == []").is_some());
        assert!(cost(37, "lists.range(-1) == []").is_none());
    }

    // V5
    #[test]
    fn costs_are_those_of_the_version() {
        let text = "a".repeat(100);
        for (expr, before, since) in [
            (format!("'{text}'.startsWith('a')"), 10, 1),
            (format!("'{text}'.endsWith('a')"), 10, 1),
            (format!("'{text}'.matches('a+')"), 11, 11),
        ] {
            assert_eq!((cost(36, &expr), cost(37, &expr)), (Some(before), Some(since)), "{expr}");
        }
    }
}
