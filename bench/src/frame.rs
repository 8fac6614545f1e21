//! How a race is run and judged: contestants take turns within every round, the best of several rounds counts, and
//! only the ratio of the two decides.

use std::fmt;
use std::time::Duration;

use navicert_types::{Clock, SystemClock};

use crate::allocations;

/// Why a race could not be run.
pub(crate) type Fault = Box<dyn std::error::Error>;

/// One contestant: does the thing once.
pub(crate) type Contestant = Box<dyn FnMut() -> Result<(), Fault>>;

/// One contestant of a race that is not about time: does the thing once and says how many bytes it took.
type Scale = Box<dyn FnMut() -> Result<u64, Fault>>;

/// One contestant that is not judged by how long it takes: does the thing once and says what it cost.
pub(crate) type Meter = Box<dyn FnMut() -> Result<Duration, Fault>>;

/// Both contestants of a race in which their turns are taken within, and what each cost comes out at the end.
pub(crate) type Meeting = Box<dyn FnMut() -> Result<(Duration, Duration), Fault>>;

/// At least five (the rule of the house); a few more cost little and make noise rarer.
pub(crate) const ROUNDS: usize = 7;
/// How long one contestant's share of a round takes, about.
const ROUND: Duration = Duration::from_millis(60);
/// A turn is long enough that reading the clock does not matter.
const TURN: Duration = Duration::from_micros(200);
/// A ratio over its limit is measured again this often before it counts.
const ATTEMPTS: usize = 4;

/// Ours against a reference.
pub(crate) struct Race {
    /// What is raced, as the table names it.
    pub(crate) what: &'static str,
    /// Ours may take this many times the reference's time.
    limit: f64,
    /// Ours may allocate this often, where that is promised.
    allocations: Option<u64>,
    /// Races whose geometric mean has a limit of its own.
    group: Option<Group>,
    contest: Contest,
}

/// What is compared.
enum Contest {
    Time {
        ours: Contestant,
        reference: Contestant,
    },
    Size {
        ours: Scale,
        reference: Scale,
    },
    /// A latency within, or the processor's time.
    Cost {
        ours: Meter,
        reference: Meter,
    },
    /// Figures that only make sense when all were taken together, such as differences to a third.
    Together(Meeting),
}

impl Race {
    /// A race that ours wins if it takes at most `limit` times as long as the reference.
    pub(crate) fn new(
        what: &'static str,
        limit: f64,
        ours: impl FnMut() -> Result<(), Fault> + 'static,
        reference: impl FnMut() -> Result<(), Fault> + 'static,
    ) -> Self {
        Race {
            what,
            limit,
            allocations: None,
            group: None,
            contest: Contest::Time { ours: Box::new(ours), reference: Box::new(reference) },
        }
    }

    /// A race that ours wins if it takes at most `limit` times as many bytes as the reference.
    pub(crate) fn sizes(
        what: &'static str,
        limit: f64,
        ours: impl FnMut() -> Result<u64, Fault> + 'static,
        reference: impl FnMut() -> Result<u64, Fault> + 'static,
    ) -> Self {
        let contest = Contest::Size { ours: Box::new(ours), reference: Box::new(reference) };
        Race { what, limit, allocations: None, group: None, contest }
    }

    /// A race that is judged by what each contestant says it cost.
    pub(crate) fn measured(what: &'static str, limit: f64, ours: Meter, reference: Meter) -> Self {
        Race { what, limit, allocations: None, group: None, contest: Contest::Cost { ours, reference } }
    }

    /// A race whose meeting measures both contestants itself, in turns, and gives ours first.
    pub(crate) fn together(what: &'static str, limit: f64, meeting: Meeting) -> Self {
        Race { what, limit, allocations: None, group: None, contest: Contest::Together(meeting) }
    }

    /// Ours may also allocate at most this often per call: 0 is a promise that some paths make.
    pub(crate) fn allocations_at_most(mut self, most: u64) -> Self {
        self.allocations = Some(most);
        self
    }

    /// It also counts in a group, whose geometric mean of ratios may be at most `limit`.
    pub(crate) fn in_group(mut self, name: &'static str, limit: f64) -> Self {
        self.group = Some(Group { name, limit });
        self
    }

    /// Measures until the limit holds or the attempts are used up; the best attempt counts.
    pub(crate) fn run(mut self) -> Result<Row, Fault> {
        let mut best = self.attempt()?;
        for _ in 1..ATTEMPTS {
            if best.holds() {
                break;
            }
            let again = self.attempt()?;
            if again.ratio() < best.ratio() {
                best = again;
            }
        }
        Ok(best)
    }

    /// The ratio alone, measured once.
    pub(crate) fn ratio(mut self) -> Result<f64, Fault> {
        Ok(self.attempt()?.ratio())
    }

    fn attempt(&mut self) -> Result<Row, Fault> {
        let (ours, reference) = match &mut self.contest {
            Contest::Time { ours, reference } => time_both(ours, reference)?,
            Contest::Size { ours, reference } => least_of_both(ours, reference, Figure::Size)?,
            Contest::Cost { ours, reference } => least_of_both(ours, reference, Figure::Cost)?,
            Contest::Together(meeting) => {
                let (ours, reference) = meeting()?;
                (Figure::Cost(ours), Figure::Cost(reference))
            }
        };
        Ok(Row {
            what: self.what,
            limit: self.limit,
            allocation_limit: self.allocations,
            group: self.group,
            ours,
            reference,
        })
    }
}

fn time_both(ours: &mut Contestant, reference: &mut Contestant) -> Result<(Figure, Figure), Fault> {
    let per_turn = calls_per_turn(ours)?.max(calls_per_turn(reference)?);
    let turns = turns_per_round(ours, reference, per_turn)?;
    let mut best: Option<(Duration, Duration)> = None;
    for round in 0..ROUNDS {
        let (mut first, mut second) = (Vec::with_capacity(turns), Vec::with_capacity(turns));
        for _ in 0..turns {
            // Whoever goes second finds a warmer machine: take turns at that too.
            if round % 2 == 0 {
                first.push(time(ours, per_turn)?);
                second.push(time(reference, per_turn)?);
            } else {
                second.push(time(reference, per_turn)?);
                first.push(time(ours, per_turn)?);
            }
        }
        let (first, second) = (median(first), median(second));
        best = Some(best.map_or((first, second), |best| (best.0.min(first), best.1.min(second))));
    }
    let (first, second) = best.unwrap_or_default();
    Ok((
        Figure::Time { time: first, allocations: count_allocations(ours)? },
        Figure::Time { time: second, allocations: count_allocations(reference)? },
    ))
}

/// The least of several rounds: what else was loaded at the time is nobody's fault.
fn least_of_both<T: Ord>(
    ours: &mut dyn FnMut() -> Result<T, Fault>,
    reference: &mut dyn FnMut() -> Result<T, Fault>,
    figure: fn(T) -> Figure,
) -> Result<(Figure, Figure), Fault> {
    let (mut first, mut second) = (ours()?, reference()?);
    for _ in 1..ROUNDS {
        first = first.min(ours()?);
        second = second.min(reference()?);
    }
    Ok((figure(first), figure(second)))
}

/// One call's time, averaged over a turn.
fn time(contestant: &mut Contestant, calls: u32) -> Result<Duration, Fault> {
    let started = SystemClock.monotonic();
    for _ in 0..calls {
        contestant()?;
    }
    Ok(SystemClock.monotonic().saturating_sub(started) / calls.max(1))
}

fn calls_per_turn(contestant: &mut Contestant) -> Result<u32, Fault> {
    let mut calls = 1_u32;
    loop {
        let taken = time(contestant, calls)?.saturating_mul(calls);
        if taken >= TURN || calls > u32::MAX / 2 {
            return Ok(calls);
        }
        calls *= 2;
    }
}

fn turns_per_round(ours: &mut Contestant, reference: &mut Contestant, per_turn: u32) -> Result<usize, Fault> {
    let slower = time(ours, per_turn)?.max(time(reference, per_turn)?).saturating_mul(per_turn);
    let turns = ROUND.as_nanos() / slower.as_nanos().max(1);
    Ok(usize::try_from(turns).unwrap_or(usize::MAX).clamp(3, 10_000))
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The least of a few calls: now and then somebody else allocates too, or a buffer grows.
fn count_allocations(contestant: &mut Contestant) -> Result<u64, Fault> {
    let mut least = u64::MAX;
    for _ in 0..10 {
        let before = allocations::count();
        contestant()?;
        least = least.min(allocations::count() - before);
    }
    Ok(least)
}

/// What one contestant took.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    Time { time: Duration, allocations: u64 },
    Size(u64),
    Cost(Duration),
}

impl Figure {
    fn value(self) -> f64 {
        match self {
            Figure::Time { time, .. } | Figure::Cost(time) => time.as_secs_f64(),
            Figure::Size(bytes) => Duration::from_micros(bytes).as_secs_f64(),
        }
    }

    fn allocations(self) -> u64 {
        match self {
            Figure::Time { allocations, .. } => allocations,
            Figure::Size(_) | Figure::Cost(_) => 0,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Time { time, allocations } => {
                let plural = if *allocations == 1 { "" } else { "s" };
                write!(f, "{time:.1?}, {allocations} allocation{plural}")
            }
            Figure::Size(bytes) => write!(f, "{} KiB", bytes / 1024),
            Figure::Cost(time) => write!(f, "{time:.1?}"),
        }
    }
}

/// Several races that are also judged together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Group {
    name: &'static str,
    limit: f64,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    what: &'static str,
    limit: f64,
    allocation_limit: Option<u64>,
    group: Option<Group>,
    ours: Figure,
    reference: Figure,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.ours.value() / self.reference.value().max(f64::MIN_POSITIVE)
    }

    fn holds(&self) -> bool {
        self.ratio() <= self.limit && self.allocation_limit.is_none_or(|most| self.ours.allocations() <= most)
    }

    fn cells(&self) -> [String; 6] {
        let allocations =
            self.allocation_limit.map(|most| format!(", {most} allocations")).unwrap_or_default();
        [
            self.what.to_owned(),
            self.ours.to_string(),
            self.reference.to_string(),
            format!("{:.2}", self.ratio()),
            format!("≤ {:.2}{allocations}", self.limit),
            if self.holds() { "holds" } else { "BROKEN" }.to_owned(),
        ]
    }
}

/// The table that `make bench` prints.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        self.0.push(row);
    }

    pub(crate) fn all_hold(&self) -> bool {
        self.0.iter().all(Row::holds) && self.means().iter().all(|(group, mean)| *mean <= group.limit)
    }

    /// The geometric mean of every group's ratios.
    fn means(&self) -> Vec<(Group, f64)> {
        let mut groups: Vec<Group> = self.0.iter().filter_map(|row| row.group).collect();
        groups.dedup();
        let mean = |group: Group| {
            let logs: Vec<f64> =
                self.0.iter().filter(|row| row.group == Some(group)).map(|row| row.ratio().ln()).collect();
            let count = u32::try_from(logs.len()).map_or(f64::MAX, f64::from);
            (group, (logs.iter().sum::<f64>() / count).exp())
        };
        groups.into_iter().map(mean).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "ours", "reference", "ratio", "limit", "verdict"].map(str::to_owned);
        let lines: Vec<[String; 6]> = std::iter::once(head).chain(self.0.iter().map(Row::cells)).collect();
        let width = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or_default());
        for (number, line) in lines.iter().enumerate() {
            let cells: Vec<String> =
                line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
            if number == 0 {
                writeln!(f, "| {} |", widths.map(|width| "-".repeat(width)).join(" | "))?;
            }
        }
        for (group, mean) in self.means() {
            let verdict = if mean <= group.limit { "holds" } else { "BROKEN" };
            writeln!(f, "{}: geometric mean {mean:.2} (limit ≤ {:.2}): {verdict}", group.name, group.limit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: u64, reference: u64, allocations: u64) -> Row {
        let figure = |micros, allocations| Figure::Time { time: Duration::from_micros(micros), allocations };
        Row {
            what: "a thing",
            limit: 1.3,
            allocation_limit: Some(2),
            group: None,
            ours: figure(ours, allocations),
            reference: figure(reference, 1),
        }
    }

    #[test]
    fn only_the_ratio_and_promised_allocations_decide() {
        assert!(row(130, 100, 2).holds());
        assert!(row(1_300_000, 1_000_000, 0).holds(), "absolute times never matter");
        assert!(!row(131, 100, 0).holds());
        assert!(!row(50, 100, 3).holds());
    }

    #[test]
    fn a_group_is_also_judged_by_its_geometric_mean() {
        let group = Some(Group { name: "things", limit: 0.6 });
        let mut table = Table::default();
        table.push(Row { group, ..row(25, 100, 0) });
        table.push(Row { group, ..row(100, 100, 0) });
        assert_eq!(table.means().len(), 1);
        assert!(table.all_hold());
        assert!(
            table.to_string().ends_with("things: geometric mean 0.50 (limit ≤ 0.60): holds\n"),
            "{table}"
        );
        table.push(Row { group, ..row(120, 100, 0) });
        assert!(!table.all_hold(), "every row holds, the mean does not");
    }

    #[test]
    fn the_table_names_what_is_broken() {
        let mut table = Table::default();
        table.push(row(110, 100, 1));
        assert!(table.all_hold());
        table.push(row(200, 100, 0));
        assert!(!table.all_hold());
        let expected = "\
| what    | ours                   | reference             | ratio | limit                 | verdict |
| ------- | ---------------------- | --------------------- | ----- | --------------------- | ------- |
| a thing | 110.0µs, 1 allocation  | 100.0µs, 1 allocation | 1.10  | ≤ 1.30, 2 allocations | holds   |
| a thing | 200.0µs, 0 allocations | 100.0µs, 1 allocation | 2.00  | ≤ 1.30, 2 allocations | BROKEN  |
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_race_counts_what_each_call_allocates() {
        let ours = || {
            std::hint::black_box(vec![1_u8; 100]);
            Ok(())
        };
        let row = Race::new("allocation", f64::MAX, ours, || Ok(())).allocations_at_most(1).run().unwrap();
        assert_eq!((row.ours.allocations(), row.reference.allocations()), (1, 0));
        assert!(row.holds());
    }

    #[test]
    fn a_race_of_sizes_takes_the_least_of_each() {
        let mut sizes = [3_u64 << 20, 1 << 20, 2 << 20].into_iter().cycle();
        let ours = move || sizes.next().ok_or_else(|| "endless".into());
        let row = Race::sizes("memory", 0.5, ours, || Ok(4 << 20)).run().unwrap();
        assert_eq!(row.ratio(), 0.25);
        assert_eq!(row.cells()[1..3], ["1024 KiB", "4096 KiB"]);
    }

    #[test]
    fn a_race_together_is_judged_by_the_best_of_its_meetings() {
        let mut ours = [9, 8, 3, 1].into_iter();
        let meeting = move || {
            let ours = ours.next().ok_or("met once too often")?;
            Ok((Duration::from_micros(ours), Duration::from_micros(10)))
        };
        let row = Race::together("a detour", 0.5, Box::new(meeting)).run().unwrap();
        assert_eq!(row.cells()[1..4], ["3.0µs", "10.0µs", "0.30"], "the first that holds");
    }

    #[test]
    fn a_contestant_that_cannot_run_stops_the_race() {
        let race = Race::new("broken", 1.0, || Err("no such thing".into()), || Ok(()));
        assert_eq!(race.run().unwrap_err().to_string(), "no such thing");
    }
}
