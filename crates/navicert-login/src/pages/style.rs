//! The style sheet of the pages, and the Content-Security-Policy that allows this one and nothing else.
// L931, L933

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Sizes are relative to the reader's font size, and every colour is defined for light and dark.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--back:#ffffff;--text:#1f2328;--muted:#59636e;--good:#116329;--bad:#a40e26;--line:#818b98}\
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--muted:#9198a1;--good:#56d364;--bad:#ff8182;--line:#656c76}}\
html{font:100%/1.5 system-ui,sans-serif;background:var(--back);color:var(--text)}\
body{margin:0;padding:1.5rem}\
main{max-width:36rem;margin:10vh auto 0;padding-left:1.25rem;border-left:.375rem solid var(--line);overflow-wrap:anywhere}\
main.good{border-color:var(--good)}\
main.bad{border-color:var(--bad)}\
h1{margin:0 0 1rem;font-size:1.75rem;line-height:1.2}\
.good h1{color:var(--good)}\
.bad h1{color:var(--bad)}\
p,dl{margin:0 0 1rem}\
dt{color:var(--muted)}\
dd{margin:0 0 .5rem}\
code{font:.9375em ui-monospace,monospace}\
:focus-visible{outline:.1875rem solid var(--text);outline-offset:.1875rem}";

/// The policy's value.
pub(super) fn content_security_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        )
    });
    &POLICY
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The custom properties of the rules for light and dark.
    fn colours() -> [BTreeMap<&'static str, [u8; 3]>; 2] {
        let (light, dark) = STYLE.split_once("@media(prefers-color-scheme:dark)").unwrap();
        [light, dark].map(|rules| {
            let root = rules.split_once(":root{").unwrap().1.split_once('}').unwrap().0;
            let properties = root.split(';').filter_map(|property| property.split_once(":#"));
            let parse = |hex: &str| {
                let channel = |at: usize| u8::from_str_radix(hex.get(at..at + 2).unwrap(), 16).unwrap();
                [channel(0), channel(2), channel(4)]
            };
            properties.map(|(name, hex)| (name, parse(hex))).collect()
        })
    }

    /// Relative luminance of WCAG 2.2.
    fn luminance(colour: [u8; 3]) -> f64 {
        let linear = colour.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn contrast_formula_knows_black_on_white() {
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 0.001);
        assert!((contrast([0x76; 3], [255; 3]) - 4.54).abs() < 0.01);
        assert!((contrast([7, 8, 9], [7, 8, 9]) - 1.0).abs() < 0.001);
    }

    #[test]
    fn text_has_enough_contrast_in_light_and_dark() {
        // L933: WCAG 2.2 AA, 4.5 for text, 3 for lines.
        for colours in colours() {
            assert_eq!(colours.len(), 6, "{colours:?}");
            for (name, colour) in &colours {
                let least = match *name {
                    "--back" => continue,
                    "--line" => 3.0,
                    _ => 4.5,
                };
                let found = contrast(*colour, colours["--back"]);
                assert!(found >= least, "{name} {colour:02x?}: {found:.2}");
            }
        }
    }

    #[test]
    fn every_colour_is_a_property_that_both_schemes_define() {
        let [light, dark] = colours();
        assert!(light.keys().eq(dark.keys()));
        let used = STYLE.split("var(").skip(1).map(|rest| rest.split_once(')').unwrap().0);
        for name in used {
            assert!(light.contains_key(name), "{name}");
        }
        assert_eq!(STYLE.matches('#').count(), 12, "a colour outside the properties");
    }

    #[test]
    fn sizes_grow_with_the_readers_font() {
        assert!(!STYLE.contains("px"), "{STYLE}");
        assert!(STYLE.contains(":focus-visible{outline:"));
    }

    #[test]
    fn style_sheet_loads_nothing_and_cannot_leave_its_element() {
        for foreign in ["url(", "@import", "http", "</", "expression"] {
            assert!(!STYLE.contains(foreign), "{foreign}");
        }
    }
}
