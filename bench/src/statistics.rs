//! What a race's rounds come to: the median decides, the spread says how far to trust it. No round is left out.

/// What both sides took in one round, in the same unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Round {
    pub(crate) ours: f64,
    pub(crate) reference: f64,
}

impl Round {
    /// Ours divided by the reference. Differences can be zero or less in a disturbed round: a reference like that counts
    /// against us, because nothing can be said to be smaller.
    pub(crate) fn ratio(self) -> f64 {
        if self.reference > 0.0 { self.ours.max(0.0) / self.reference } else { f64::INFINITY }
    }
}

/// Median and range of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// Confidence interval of the median.
    pub(crate) interval: (f64, f64),
}

/// From this many values on, the outermost on each side lie outside the interval. By the sign test it contains the true
/// median with 99 % for eleven values, 96 % for nine and 94 % for five (the whole range).
const TRIMMED_FROM: usize = 9;

impl Summary {
    /// `None` if there are no values.
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = match middle.checked_sub(1).and_then(|lower| values.get(lower)) {
            Some(lower) if values.len().is_multiple_of(2) => lower.midpoint(upper),
            _ => upper,
        };
        let trimmed = usize::from(values.len() >= TRIMMED_FROM);
        let interval = (*values.get(trimmed)?, *values.get(values.len() - 1 - trimmed)?);
        Some(Summary { median, least, most, interval })
    }

    /// Whether the values do not tell on which side of a limit the median is.
    pub(crate) fn is_undecided(&self, limit: f64) -> bool {
        let (low, high) = self.interval;
        low <= limit && limit < high
    }
}

/// The median, or 0 of no values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Summary::from_values(values).map_or(0.0, |summary| summary.median)
}

/// The geometric mean, which treats twice as fast and twice as slow alike.
pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    let count = u32::try_from(values.len()).map_or(f64::MAX, f64::from);
    (values.iter().map(|value| value.ln()).sum::<f64>() / count).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_value_in_whatever_order_they_come() {
        for (values, expected) in [
            (&[3.0][..], 3.0),
            (&[9.0, 1.0, 2.0], 2.0),
            (&[4.0, 1.0, 3.0, 2.0], 2.5),
            (&[5.0, f64::INFINITY, 1.0, 2.0, 100.0], 5.0),
        ] {
            assert_eq!(median(values.iter().copied()), expected, "{values:?}");
        }
        assert_eq!(Summary::from_values([]), None);
    }

    #[test]
    fn spread_is_the_whole_range_and_leaves_no_round_out() {
        let summary = Summary::from_values([1.0, 0.9, 7.0, 1.1, 0.2]).unwrap();
        assert_eq!((summary.median, summary.least, summary.most), (1.0, 0.2, 7.0));
    }

    #[test]
    fn interval_of_eleven_rounds_excludes_one_on_each_side() {
        let values: Vec<f64> = (1..=11).map(f64::from).collect();
        let summary = Summary::from_values(values).unwrap();
        assert_eq!(summary.interval, (2.0, 10.0));
        let undecided = [1.9, 2.0, 9.9, 10.0].map(|limit| summary.is_undecided(limit));
        assert_eq!(undecided, [false, true, true, false]);
        assert_eq!(Summary::from_values([3.0, 1.0, 2.0, 5.0, 4.0]).unwrap().interval, (1.0, 5.0));
    }

    #[test]
    fn paired_ratios_cancel_what_slows_both_sides_of_a_round() {
        // The machine becomes four times slower; ours is always twice the reference.
        let rounds = [1.0, 2.0, 3.0, 4.0, 4.0].map(|slow| Round { ours: 2.0 * slow, reference: slow });
        let summary = Summary::from_values(rounds.map(Round::ratio)).unwrap();
        assert_eq!((summary.median, summary.least, summary.most), (2.0, 2.0, 2.0));
    }

    #[test]
    fn reference_without_a_positive_figure_counts_against_us() {
        for (ours, reference, expected) in
            [(1.0, 2.0, 0.5), (-1.0, 2.0, 0.0), (1.0, 0.0, f64::INFINITY), (-2.0, -1.0, f64::INFINITY)]
        {
            assert_eq!(Round { ours, reference }.ratio(), expected, "{ours} / {reference}");
        }
    }

    #[test]
    fn geometric_mean_treats_twice_and_half_alike() {
        assert!((geometric_mean(&[0.5, 2.0]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean(&[0.25, 1.0]) - 0.5).abs() < 1e-12);
    }
}
