//! What the expression language does where versions of cel-go differ: one row of facts per version. The code that implements a
//! behaviour reads its fact; no other place compares versions.
// V5

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

impl LanguageFacts {
    /// The language of the newest version.
    pub(crate) const NEWEST: &'static LanguageFacts = &CEL_GO_0_29;

    /// The language of Kubernetes 1.N.
    pub(crate) fn for_minor(minor: u16) -> &'static LanguageFacts {
        let found = LANGUAGES.iter().find(|(since, _)| *since <= minor);
        found.map_or(LanguageFacts::NEWEST, |(_, facts)| facts)
    }
}
