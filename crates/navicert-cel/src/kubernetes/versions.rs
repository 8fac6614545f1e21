//! The differences between the expression languages of Kubernetes versions, as rows of a table.
// V5

use crate::check::additions::{ADDITIONS, Addition};
use crate::check::declaration::Declaration;
use crate::functions;
use crate::language::LanguageFacts;

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
