//! How long the long tests are: `make test` runs their short forms, `make soak` multiplies them.

use crate::environment;

/// The factor on counts and durations of faults, floods and leak counts: `NAVICERT_SOAK`, or 1.
///
/// # Panics
/// If the variable is set to anything but a number from 1.
pub fn factor() -> usize {
    let Some(given) = environment::variable("NAVICERT_SOAK") else { return 1 };
    parse(&given.to_string_lossy()).expect("NAVICERT_SOAK is a number from 1")
}

fn parse(text: &str) -> Option<usize> {
    text.parse().ok().filter(|factor| *factor >= 1)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_factor_is_a_number_from_one() {
        assert_eq!([parse("50"), parse("0"), parse("x"), parse("")], [Some(50), None, None, None]);
    }
}
