//! Slicing and sorting for the lists extension. The functions compute positions; the caller holds the elements.

use std::cmp::Ordering;
use std::ops::Range;

/// Maximum length of the list returned by `lists.range`.
pub(crate) const RANGE_LIMIT: i64 = 1_000_000;

/// Why a function of the lists extension fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    /// `slice(-1, 2)`
    #[error("cannot slice({0}, {1}), negative indexes not supported")]
    NegativeIndex(i64, i64),
    /// `slice(2, 1)`
    #[error("cannot slice({0}, {1}), start index must be less than or equal to end index")]
    ReversedSlice(i64, i64),
    /// `slice(0, 9)` of three
    #[error("cannot slice({0}, {1}), list is length {2}")]
    SliceEnd(i64, i64, usize),
    /// `lists.range(-1)`
    #[error("lists.range: size must be non-negative, got {0}")]
    NegativeRange(i64),
    /// `lists.range(2000000)`
    #[error("lists.range: size {0} exceeds maximum allowed (1000000)")]
    LongRange(i64),
    /// `flatten(-1)`
    #[error("level must be non-negative")]
    NegativeLevel,
}

/// `list.slice(start, end)`: the positions of the slice.
pub(crate) fn slice(start: i64, end: i64, length: usize) -> Result<Range<usize>, ListError> {
    let (Ok(first), Ok(last)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(ListError::NegativeIndex(start, end));
    };
    if first > last {
        return Err(ListError::ReversedSlice(start, end));
    }
    if last > length { Err(ListError::SliceEnd(start, end, length)) } else { Ok(first..last) }
}

/// `lists.range(size)`: the range of its elements.
///
/// Only newer versions are `bounded`: they reject a size that is negative or too large.
pub(crate) fn range(size: i64, bounded: bool) -> Result<Range<i64>, ListError> {
    match size {
        _ if !bounded => Ok(0..size.max(0)),
        ..0 => Err(ListError::NegativeRange(size)),
        0..=RANGE_LIMIT => Ok(0..size),
        _ => Err(ListError::LongRange(size)),
    }
}

/// `list.flatten(level)`: the number of levels to flatten.
pub(crate) fn flatten_level(level: i64) -> Result<u64, ListError> {
    u64::try_from(level).map_err(|_| ListError::NegativeLevel)
}

/// Up to this many elements Go uses insertion sort, which is visible in the result if an element is NaN.
const INSERTION_LIMIT: usize = 12;

/// The positions of the elements in ascending order, for `sort` and `sortBy`. The sort is stable.
///
/// `compare` returns `None` for NaN, which then counts as equal. That is not a total order, for which the standard
/// sort may panic; insertion sort and merging do not.
pub(crate) fn sorted_positions(
    length: usize,
    mut compare: impl FnMut(usize, usize) -> Option<Ordering>,
) -> Vec<usize> {
    let mut less = |left: usize, right: usize| compare(left, right) == Some(Ordering::Less);
    let mut positions: Vec<usize> = (0..length).collect();
    for run in positions.chunks_mut(INSERTION_LIMIT) {
        insert(run, &mut less);
    }
    let mut width = INSERTION_LIMIT;
    while width < length {
        let merged = positions.chunks(width.saturating_mul(2)).flat_map(|pair| {
            let (left, right) = pair.split_at_checked(width).unwrap_or((pair, &[]));
            merge(left, right, &mut less)
        });
        positions = merged.collect();
        width = width.saturating_mul(2);
    }
    positions
}

fn insert(run: &mut [usize], less: &mut impl FnMut(usize, usize) -> bool) {
    for end in 1..run.len() {
        for at in (1..=end).rev() {
            let (Some(&left), Some(&right)) = (run.get(at - 1), run.get(at)) else { break };
            if !less(right, left) {
                break;
            }
            run.swap(at - 1, at);
        }
    }
}

fn merge(left: &[usize], right: &[usize], less: &mut impl FnMut(usize, usize) -> bool) -> Vec<usize> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    while let (Some(&first), Some(&second)) = (left.peek(), right.peek()) {
        merged.extend(if less(second, first) { right.next() } else { left.next() });
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_rejects_positions_outside_the_list() {
        for (start, end, result) in [
            (0, 2, Ok(0..2)),
            (3, 3, Ok(3..3)),
            (-1, 2, Err("cannot slice(-1, 2), negative indexes not supported")),
            (0, -1, Err("cannot slice(0, -1), negative indexes not supported")),
            (2, 1, Err("cannot slice(2, 1), start index must be less than or equal to end index")),
            (0, 4, Err("cannot slice(0, 4), list is length 3")),
        ] {
            assert_eq!(
                slice(start, end, 3).map_err(|error| error.to_string()),
                result.map_err(str::to_owned)
            );
        }
    }

    #[test]
    fn range_rejects_invalid_lengths() {
        assert_eq!(range(3, true), Ok(0..3));
        assert_eq!((range(-1, false), range(2_000_000, false)), (Ok(0..0), Ok(0..2_000_000)));
        assert_eq!(range(1_000_000, true), Ok(0..1_000_000));
        assert_eq!(
            range(-1, true).unwrap_err().to_string(),
            "lists.range: size must be non-negative, got -1"
        );
        let error = range(10_000_000, true).unwrap_err();
        assert_eq!(error.to_string(), "lists.range: size 10000000 exceeds maximum allowed (1000000)");
        assert_eq!(flatten_level(-1), Err(ListError::NegativeLevel));
        assert_eq!(flatten_level(2), Ok(2));
    }

    #[test]
    fn sort_is_stable_and_accepts_nan() {
        let keys = [3, 1, 2, 1, 3];
        assert_eq!(sorted_positions(5, |left, right| Some(keys[left].cmp(&keys[right]))), [1, 3, 2, 0, 4]);
        let short = [f64::NAN, 3.0, f64::NAN, 0.5, 1.0];
        assert_eq!(
            sorted_positions(5, |left, right| short[left].partial_cmp(&short[right])),
            [0, 1, 2, 3, 4]
        );
        let long: Vec<usize> = (0..100).map(|at| at * 37 % 10).collect();
        let positions = sorted_positions(100, |left, right| Some(long[left].cmp(&long[right])));
        let mut expected: Vec<usize> = (0..100).collect();
        expected.sort_by_key(|&at| long[at]);
        assert_eq!(positions, expected);
        let doubles: Vec<f64> =
            (0..60).map(|at| if at % 7 == 0 { f64::NAN } else { f64::from(at * 31 % 17) }).collect();
        let mut positions = sorted_positions(60, |left, right| doubles[left].partial_cmp(&doubles[right]));
        positions.sort_unstable();
        assert_eq!(positions, (0..60).collect::<Vec<_>>());
    }
}
