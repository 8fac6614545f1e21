//! The names accepted in `\p{…}`: Unicode general categories with their long names, and scripts. The comparison
//! ignores case, spaces, underscores and hyphens. RE2 has no other properties (`Alphabetic`, `Emoji`).

/// The name of the property in the Unicode tables; `None` if RE2 does not support it.
pub(super) fn table_name(name: &str) -> Option<&'static str> {
    let plain = normalize(name);
    let category = CATEGORIES.binary_search_by(|(alias, _)| (*alias).cmp(plain.as_str()));
    if let Some((_, short)) = category.ok().and_then(|at| CATEGORIES.get(at)) {
        return Some(short);
    }
    SCRIPTS.binary_search(&plain.as_str()).ok().and_then(|at| SCRIPTS.get(at)).copied()
}

/// Normalizes a name for comparison.
pub(super) fn normalize(name: &str) -> String {
    let counts = |symbol: &char| !matches!(symbol, '_' | '-' | ' ');
    name.chars().filter(counts).map(|symbol| symbol.to_ascii_lowercase()).collect()
}

const CATEGORIES: &[(&str, &str)] = &[
    ("c", "C"),
    ("casedletter", "LC"),
    ("cc", "Cc"),
    ("cf", "Cf"),
    ("closepunctuation", "Pe"),
    ("cn", "Cn"),
    ("cntrl", "Cc"),
    ("co", "Co"),
    ("combiningmark", "M"),
    ("connectorpunctuation", "Pc"),
    ("control", "Cc"),
    ("cs", "Cs"),
    ("currencysymbol", "Sc"),
    ("dashpunctuation", "Pd"),
    ("decimalnumber", "Nd"),
    ("digit", "Nd"),
    ("enclosingmark", "Me"),
    ("finalpunctuation", "Pf"),
    ("format", "Cf"),
    ("initialpunctuation", "Pi"),
    ("l", "L"),
    ("lc", "LC"),
    ("letter", "L"),
    ("letternumber", "Nl"),
    ("lineseparator", "Zl"),
    ("ll", "Ll"),
    ("lm", "Lm"),
    ("lo", "Lo"),
    ("lowercaseletter", "Ll"),
    ("lt", "Lt"),
    ("lu", "Lu"),
    ("m", "M"),
    ("mark", "M"),
    ("mathsymbol", "Sm"),
    ("mc", "Mc"),
    ("me", "Me"),
    ("mn", "Mn"),
    ("modifierletter", "Lm"),
    ("modifiersymbol", "Sk"),
    ("n", "N"),
    ("nd", "Nd"),
    ("nl", "Nl"),
    ("no", "No"),
    ("nonspacingmark", "Mn"),
    ("number", "N"),
    ("openpunctuation", "Ps"),
    ("other", "C"),
    ("otherletter", "Lo"),
    ("othernumber", "No"),
    ("otherpunctuation", "Po"),
    ("othersymbol", "So"),
    ("p", "P"),
    ("paragraphseparator", "Zp"),
    ("pc", "Pc"),
    ("pd", "Pd"),
    ("pe", "Pe"),
    ("pf", "Pf"),
    ("pi", "Pi"),
    ("po", "Po"),
    ("privateuse", "Co"),
    ("ps", "Ps"),
    ("punct", "P"),
    ("punctuation", "P"),
    ("s", "S"),
    ("sc", "Sc"),
    ("separator", "Z"),
    ("sk", "Sk"),
    ("sm", "Sm"),
    ("so", "So"),
    ("spaceseparator", "Zs"),
    ("spacingmark", "Mc"),
    ("surrogate", "Cs"),
    ("symbol", "S"),
    ("titlecaseletter", "Lt"),
    ("unassigned", "Cn"),
    ("uppercaseletter", "Lu"),
    ("z", "Z"),
    ("zl", "Zl"),
    ("zp", "Zp"),
    ("zs", "Zs"),
];

// Scripts with a one-word name. Go 1.26 rejects the others in every spelling.
#[rustfmt::skip]
const SCRIPTS: &[&str] = &[
    "adlam", "ahom", "arabic", "armenian", "avestan", "balinese", "bamum", "batak", "bengali",
    "bhaiksuki", "bopomofo", "brahmi", "braille", "buginese", "buhid", "carian", "chakma", "cham",
    "cherokee", "chorasmian", "common", "coptic", "cuneiform", "cypriot", "cyrillic", "deseret",
    "devanagari", "dogra", "duployan", "elbasan", "elymaic", "ethiopic", "georgian", "glagolitic",
    "gothic", "grantha", "greek", "gujarati", "gurmukhi", "han", "hangul", "hanunoo", "hatran", "hebrew",
    "hiragana", "inherited", "javanese", "kaithi", "kannada", "katakana", "kawi", "kharoshthi", "khmer",
    "khojki", "khudawadi", "lao", "latin", "lepcha", "limbu", "lisu", "lycian", "lydian", "mahajani",
    "makasar", "malayalam", "mandaic", "manichaean", "marchen", "medefaidrin", "miao", "modi",
    "mongolian", "mro", "multani", "myanmar", "nabataean", "nandinagari", "newa", "nko", "nushu", "ogham",
    "oriya", "osage", "osmanya", "palmyrene", "phoenician", "rejang", "runic", "samaritan", "saurashtra",
    "sharada", "shavian", "siddham", "sinhala", "sogdian", "soyombo", "sundanese",
    "syriac", "tagalog", "tagbanwa", "takri", "tamil", "tangsa", "tangut", "telugu", "thaana", "thai",
    "tibetan", "tifinagh", "tirhuta", "toto", "ugaritic", "vai", "vithkuqi", "wancho", "yezidi", "yi",
];
