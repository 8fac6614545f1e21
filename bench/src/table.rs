//! What `make bench` prints: one line per row, then one line that counts them.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::race::{Group, Measurement, Row, Unit};
use crate::statistics::{Summary, geometric_mean};

/// One row and what became of it.
pub(crate) struct Line {
    row: Row,
    outcome: Outcome,
}

enum Outcome {
    Measured(Measurement),
    /// What it needs is missing.
    Skipped(String),
    /// It could not be measured although everything seemed present.
    Failed(String),
}

impl Line {
    pub(crate) fn measured(row: Row, measurement: Measurement) -> Self {
        Line { row, outcome: Outcome::Measured(measurement) }
    }

    pub(crate) fn skipped(row: Row, reason: String) -> Self {
        Line { row, outcome: Outcome::Skipped(reason) }
    }

    /// The reason is cut to one line of the table.
    pub(crate) fn failed(row: Row, reason: &str) -> Self {
        let one_line = reason.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
        Line { row, outcome: Outcome::Failed(one_line.chars().take(MAX_REASON_CHARS).collect()) }
    }

    fn verdict(&self) -> Verdict {
        match &self.outcome {
            Outcome::Skipped(_) => Verdict::Skipped,
            Outcome::Failed(_) => Verdict::Failed,
            Outcome::Measured(measurement) => {
                let allocations = measurement.allocations.map_or(0, |(ours, _)| ours);
                let allocates_too_often = self.row.allocations.is_some_and(|most| allocations > most);
                // A ratio that is no number holds nothing.
                if measurement.ratio.median <= self.row.limit && !allocates_too_often {
                    Verdict::Holds
                } else {
                    Verdict::Broken
                }
            }
        }
    }

    /// Whether the rounds do not tell on which side of the limit the median is. The verdict is the median's all the same.
    fn is_undecided(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio.is_undecided(self.row.limit))
    }

    fn ratio(&self) -> Option<Summary> {
        match &self.outcome {
            Outcome::Measured(measurement) => Some(measurement.ratio),
            Outcome::Skipped(_) | Outcome::Failed(_) => None,
        }
    }

    fn cells(&self) -> [String; 7] {
        let (ours, theirs) = match &self.outcome {
            Outcome::Measured(measurement) => figures(measurement),
            Outcome::Skipped(_) | Outcome::Failed(_) => (EMPTY.to_owned(), EMPTY.to_owned()),
        };
        let (ratio, spread) = match self.ratio() {
            Some(ratio) => (number(ratio.median), format!("{}–{}", number(ratio.least), number(ratio.most))),
            None => (EMPTY.to_owned(), EMPTY.to_owned()),
        };
        let verdict = match &self.outcome {
            Outcome::Measured(_) if self.is_undecided() => format!("{}, undecided", self.verdict()),
            Outcome::Measured(_) => self.verdict().to_string(),
            Outcome::Skipped(reason) => format!("skipped: {reason}"),
            Outcome::Failed(reason) => format!("FAILED: {reason}"),
        };
        [self.row.name.to_owned(), ours, theirs, ratio, spread, limit(&self.row), verdict]
    }
}

/// One progress line: ratio, spread, limit and verdict.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, ours, theirs, ratio, spread, limit, verdict] = self.cells();
        if self.ratio().is_none() {
            return f.write_str(&verdict);
        }
        write!(f, "{verdict}: {ratio} ({spread}), limit {limit}; {ours} / {theirs}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Holds,
    Broken,
    Skipped,
    Failed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::Broken => "BROKEN",
            Verdict::Skipped => "skipped",
            Verdict::Failed => "FAILED",
        })
    }
}

const EMPTY: &str = "—";
const MAX_REASON_CHARS: usize = 160;

/// What a row may be at most.
pub(crate) fn limit(row: &Row) -> String {
    let allocations = row.allocations.map(|most| format!(", {}", allocations(most))).unwrap_or_default();
    format!("≤ {}{allocations}", number(row.limit))
}

fn allocations(count: u64) -> String {
    format!("{count} allocation{}", if count == 1 { "" } else { "s" })
}

/// Two digits after the point, and more where a ratio is small.
fn number(value: f64) -> String {
    if value.is_infinite() {
        "∞".to_owned()
    } else if value < 0.1 {
        let text = format!("{value:.4}");
        text.strip_suffix("00").unwrap_or(&text).to_owned()
    } else {
        format!("{value:.2}")
    }
}

fn figures(measurement: &Measurement) -> (String, String) {
    let figure = |value: f64| match measurement.unit {
        Unit::Seconds => match Duration::try_from_secs_f64(value.abs()) {
            Ok(time) => format!("{}{time:.1?}", if value < 0.0 { "-" } else { "" }),
            Err(_) => EMPTY.to_owned(),
        },
        Unit::Bytes => format!("{:.0} KiB", value / 1024.0),
        Unit::Times => format!("× {}", number(value)),
    };
    let (ours, theirs) = (figure(measurement.ours), figure(measurement.reference));
    match measurement.allocations {
        Some((own, other)) => {
            (format!("{ours}, {}", allocations(own)), format!("{theirs}, {}", allocations(other)))
        }
        None => (ours, theirs),
    }
}

/// Every row that was wanted.
#[derive(Default)]
pub(crate) struct Table {
    lines: Vec<Line>,
    /// Groups of which every row was wanted.
    groups: Vec<Group>,
}

impl Table {
    /// `groups` are judged by their geometric mean if each of their rows was measured.
    pub(crate) fn new(groups: Vec<Group>) -> Self {
        Table { lines: Vec::new(), groups }
    }

    pub(crate) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.count(Verdict::Broken) > 0
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.count(Verdict::Failed) > 0
    }

    /// Whether every row was skipped: then there is no verdict.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.verdict() == Verdict::Skipped)
    }

    fn count(&self, verdict: Verdict) -> usize {
        let means = self.means();
        let means = means.iter().filter(|(_, _, of_mean)| *of_mean == verdict);
        self.lines.iter().filter(|line| line.verdict() == verdict).count() + means.count()
    }

    /// Every group's geometric mean of medians, and its verdict; none where a row of it was not measured.
    fn means(&self) -> Vec<(Group, Option<f64>, Verdict)> {
        let mean = |group: &Group| {
            let rows = self.lines.iter().filter(|line| line.row.group == Some(*group));
            let ratios: Option<Vec<f64>> = rows.map(|line| line.ratio().map(|ratio| ratio.median)).collect();
            let mean = ratios.filter(|ratios| !ratios.is_empty()).map(|ratios| geometric_mean(&ratios));
            let verdict = match mean {
                None => Verdict::Skipped,
                Some(mean) if mean <= group.limit => Verdict::Holds,
                Some(_) => Verdict::Broken,
            };
            (*group, mean, verdict)
        };
        self.groups.iter().map(mean).collect()
    }

    fn rows(&self) -> Vec<[String; 7]> {
        let empty = || EMPTY.to_owned();
        let means = self.means().into_iter().map(|(group, mean, verdict)| {
            let verdict = match mean {
                Some(_) => verdict.to_string(),
                None => "skipped: one of its rows was not measured".to_owned(),
            };
            let ratio = mean.map_or_else(empty, number);
            let limit = format!("≤ {}", number(group.limit));
            [group.name.to_owned(), empty(), empty(), ratio, empty(), limit, verdict]
        });
        self.lines.iter().map(Line::cells).chain(means).collect()
    }

    /// The table of `docs/benchmarks.md`: limits and ratios without absolute times.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "| row | limit | ratio (median) | spread | verdict |\n| --- | --- | --- | --- | --- |\n",
        );
        for [name, _, _, ratio, spread, limit, verdict] in self.rows() {
            let _ = writeln!(text, "| {name} | {limit} | {ratio} | {spread} | {verdict} |");
        }
        text
    }

    /// The last line.
    pub(crate) fn summary(&self) -> String {
        let count = |verdict| self.count(verdict);
        let all = self.lines.len() + self.groups.len();
        let mut text = format!(
            "{all} row{}: {} held, {} missed, {} skipped, {} failed",
            if all == 1 { "" } else { "s" },
            count(Verdict::Holds),
            count(Verdict::Broken),
            count(Verdict::Skipped),
            count(Verdict::Failed),
        );
        let undecided = self.lines.iter().filter(|line| line.is_undecided()).count();
        if undecided > 0 {
            let _ = write!(text, "; undecided {undecided}: the rounds lie on both sides of the limit");
        }
        for (reason, rows) in reasons(self.lines.iter().filter_map(|line| match &line.outcome {
            Outcome::Skipped(reason) => Some(reason.as_str()),
            Outcome::Measured(_) | Outcome::Failed(_) => None,
        })) {
            let _ = write!(text, "; skipped {rows}: {reason}");
        }
        text
    }
}

/// Each reason once, in the order in which they come, and how often it does.
pub(crate) fn reasons<'a>(all: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for reason in all {
        match counted.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counted.push((reason, 1)),
        }
    }
    counted
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["row", "ours", "theirs", "ratio", "spread", "limit", "verdict"].map(str::to_owned);
        let lines: Vec<[String; 7]> = std::iter::once(head).chain(self.rows()).collect();
        let width = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or_default());
        for (number, line) in lines.iter().enumerate() {
            let cells: Vec<String> =
                line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
            if number == 0 {
                writeln!(f, "| {} |", widths.map(|width| "-".repeat(width)).join(" | "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str) -> Row {
        Row { name, limit: 1.3, allocations: Some(2), group: None, needs: Vec::new() }
    }

    fn measurement(median: f64, allocations: u64) -> Measurement {
        Measurement {
            unit: Unit::Seconds,
            ours: median * 1e-4,
            reference: 1e-4,
            ratio: Summary { median, least: 0.5, most: 9.0, interval: (median - 0.15, median + 0.15) },
            allocations: Some((allocations, 1)),
        }
    }

    fn line(median: f64, allocations: u64) -> Line {
        Line::measured(row("a thing"), measurement(median, allocations))
    }

    #[test]
    fn median_and_promised_allocations_decide() {
        for (median, allocations, verdict) in [
            (1.3, 2, Verdict::Holds),
            (1.31, 0, Verdict::Broken),
            (0.5, 3, Verdict::Broken),
            (f64::INFINITY, 0, Verdict::Broken),
            (f64::NAN, 0, Verdict::Broken),
        ] {
            // The best round is always below the limit, the worst always above: neither matters.
            assert_eq!(line(median, allocations).verdict(), verdict, "{median}, {allocations}");
        }
    }

    #[test]
    fn table_shows_every_row_and_the_last_line_counts_them() {
        let mut table = Table::default();
        table.push(line(1.1, 1));
        table.push(line(1.2, 1));
        table.push(line(1.4, 1));
        table.push(line(2.0, 0));
        table.push(Line::skipped(row("another"), "kubectl is not installed (make tools)".to_owned()));
        table.push(Line::skipped(row("a third"), "kubectl is not installed (make tools)".to_owned()));
        table.push(Line::failed(row("a fourth"), "connection\nrefused"));
        let expected = "\
| row      | ours                   | theirs                | ratio | spread    | limit                 | verdict                                        |
| -------- | ---------------------- | --------------------- | ----- | --------- | --------------------- | ---------------------------------------------- |
| a thing  | 110.0µs, 1 allocation  | 100.0µs, 1 allocation | 1.10  | 0.50–9.00 | ≤ 1.30, 2 allocations | holds                                          |
| a thing  | 120.0µs, 1 allocation  | 100.0µs, 1 allocation | 1.20  | 0.50–9.00 | ≤ 1.30, 2 allocations | holds, undecided                               |
| a thing  | 140.0µs, 1 allocation  | 100.0µs, 1 allocation | 1.40  | 0.50–9.00 | ≤ 1.30, 2 allocations | BROKEN, undecided                              |
| a thing  | 200.0µs, 0 allocations | 100.0µs, 1 allocation | 2.00  | 0.50–9.00 | ≤ 1.30, 2 allocations | BROKEN                                         |
| another  | —                      | —                     | —     | —         | ≤ 1.30, 2 allocations | skipped: kubectl is not installed (make tools) |
| a third  | —                      | —                     | —     | —         | ≤ 1.30, 2 allocations | skipped: kubectl is not installed (make tools) |
| a fourth | —                      | —                     | —     | —         | ≤ 1.30, 2 allocations | FAILED: connection refused                     |
";
        assert_eq!(table.to_string(), expected);
        let summary = "7 rows: 2 held, 2 missed, 2 skipped, 1 failed; \
            undecided 2: the rounds lie on both sides of the limit; \
            skipped 2: kubectl is not installed (make tools)";
        assert_eq!(table.summary(), summary);
        assert!(table.is_broken() && table.has_failed() && !table.is_empty());
    }

    #[test]
    fn group_is_also_judged_by_the_geometric_mean_of_its_medians() {
        let group = Group { name: "things, geometric mean", limit: 0.6 };
        let grouped =
            |median| Line::measured(Row { group: Some(group), ..row("a thing") }, measurement(median, 0));
        let mut table = Table::new(vec![group]);
        table.push(grouped(0.25));
        table.push(grouped(1.0));
        assert!(!table.is_broken());
        assert!(table.markdown().ends_with("| things, geometric mean | ≤ 0.60 | 0.50 | — | holds |\n"));
        assert_eq!(table.summary(), "3 rows: 3 held, 0 missed, 0 skipped, 0 failed");
        table.push(grouped(1.2));
        assert!(table.is_broken(), "every row holds, the mean does not");
        table.push(Line::failed(Row { group: Some(group), ..row("a thing") }, "no"));
        assert!(!table.is_broken(), "a mean of some rows is not the group's");
    }

    #[test]
    fn nothing_measured_is_no_verdict() {
        assert!(Table::default().is_empty());
        let mut table = Table::default();
        table.push(Line::skipped(row("a thing"), "missing".to_owned()));
        assert!(table.is_empty() && !table.is_broken() && !table.has_failed());
        table.push(line(1.0, 0));
        assert!(!table.is_empty());
    }

    #[test]
    fn small_ratios_keep_their_digits() {
        for (value, text) in [
            (1.0 / 3.0, "0.33"),
            (0.02, "0.02"),
            (0.0125, "0.0125"),
            (0.0004, "0.0004"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
