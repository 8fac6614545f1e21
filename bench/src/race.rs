//! How a race is measured: a fixed number of rounds, both sides in every round, the median of the rounds' ratios decides.
//!
//! Nothing is repeated because of its result and no round is left out, so that a limit can be missed. Within a round the
//! sides follow each other as ours, reference, reference, ours: what the first leaves behind for the second, and a machine
//! that slowly becomes faster or slower, are the same for both.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use navicert_types::{Clock, SystemClock};

use crate::affinity::OneProcessor;
use crate::allocations;
use crate::needs::Need;
use crate::statistics::{Round, Summary, median};

pub(crate) use crate::fault::Fault;

/// One side: does the work once.
pub(crate) type Contestant = Box<dyn FnMut() -> Result<(), Fault>>;

/// One side that is not judged by how long it takes: does the work once and says what it cost.
pub(crate) type Meter = Box<dyn FnMut() -> Result<Duration, Fault>>;

/// One side of a race about memory: does the work once and says how many bytes it took.
pub(crate) type Scale = Box<dyn FnMut() -> Result<u64, Fault>>;

/// A race that measures both sides itself, one round per call, in an order that favours neither.
pub(crate) type BothSides = Box<dyn FnMut() -> Result<Round, Fault>>;

/// Rounds that count. Odd, so that the median is a round that was measured. A wrong verdict takes disturbances of the same
/// direction in six rounds of eleven: if one round in ten is disturbed against us, that happens to a row once in three
/// thousand runs (with seven rounds once in four hundred, with five once in a hundred).
pub(crate) const ROUNDS: usize = 11;
/// Rounds that count where one takes seconds and varies little, such as memory.
pub(crate) const FEW_ROUNDS: usize = 5;
/// Rounds before them that never count: files are read, pools filled, branches learned.
const WARM_UP_ROUNDS: usize = 1;
/// About how long one side works in a round; slower work is done twice per round, however long it takes.
const SIDE_OF_ROUND: Duration = Duration::from_millis(100);
/// The same where many threads share the processors: which thread runs where changes every few hundred milliseconds.
const SIDE_OF_LONG_ROUND: Duration = Duration::from_millis(600);
/// A turn is long enough that reading the clock does not matter.
const TURN: Duration = Duration::from_micros(200);
/// Calls in which allocations are counted.
const COUNTED_CALLS: usize = 10;

/// What a row promises, and what it takes to measure it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What is raced, as the table names it.
    pub(crate) name: &'static str,
    /// The median ratio may be at most this.
    pub(crate) limit: f64,
    /// Ours may allocate this often per call, where that is promised.
    pub(crate) allocations: Option<u64>,
    /// Rows whose geometric mean has a limit of its own.
    pub(crate) group: Option<Group>,
    pub(crate) needs: Vec<Need>,
}

impl Row {
    /// Why the row cannot be measured here; `None` if it can.
    pub(crate) fn missing(&self) -> Option<String> {
        self.needs.iter().find_map(|need| need.missing())
    }
}

/// Several rows that are also judged together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) limit: f64,
}

/// Ours against a reference. Making one costs nothing: what it takes is prepared when it is run.
pub(crate) struct Race {
    pub(crate) row: Row,
    rounds: usize,
    side_of_round: Duration,
    on_one_processor: bool,
    prepare: Box<dyn FnOnce() -> Result<Contest, Fault>>,
}

/// What is compared.
pub(crate) enum Contest {
    Time { ours: Contestant, reference: Contestant },
    Cost { ours: Meter, reference: Meter },
    Size { ours: Scale, reference: Scale },
    Together { unit: Unit, both: BothSides },
}

/// What figures are in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    /// How many times something else.
    Times,
}

/// What the rounds came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) unit: Unit,
    /// Medians of each side by itself.
    pub(crate) ours: f64,
    pub(crate) reference: f64,
    /// Of the rounds' ratios.
    pub(crate) ratio: Summary,
    /// Ours and the reference's, per call, where they are counted.
    pub(crate) allocations: Option<(u64, u64)>,
}

impl Contest {
    /// By the time that a call takes.
    pub(crate) fn time(
        ours: impl FnMut() -> Result<(), Fault> + 'static,
        reference: impl FnMut() -> Result<(), Fault> + 'static,
    ) -> Self {
        Contest::Time { ours: Box::new(ours), reference: Box::new(reference) }
    }

    /// By the bytes that a call says it took.
    pub(crate) fn sizes(
        ours: impl FnMut() -> Result<u64, Fault> + 'static,
        reference: impl FnMut() -> Result<u64, Fault> + 'static,
    ) -> Self {
        Contest::Size { ours: Box::new(ours), reference: Box::new(reference) }
    }
}

impl Race {
    /// A race that ours wins if the median of its rounds' ratios is at most `limit`.
    pub(crate) fn new(
        name: &'static str,
        limit: f64,
        prepare: impl FnOnce() -> Result<Contest, Fault> + 'static,
    ) -> Self {
        let row = Row { name, limit, allocations: None, group: None, needs: Vec::new() };
        Race {
            row,
            rounds: ROUNDS,
            side_of_round: SIDE_OF_ROUND,
            on_one_processor: false,
            prepare: Box::new(prepare),
        }
    }

    /// Ours may also allocate at most this often per call: 0 is a promise that some paths make.
    pub(crate) fn allocations_at_most(mut self, most: u64) -> Self {
        self.row.allocations = Some(most);
        self
    }

    /// It also counts in a group, whose geometric mean of ratios may be at most `limit`.
    pub(crate) fn in_group(mut self, name: &'static str, limit: f64) -> Self {
        self.row.group = Some(Group { name, limit });
        self
    }

    /// It is skipped where one of these is missing.
    pub(crate) fn needs(mut self, needs: &[Need]) -> Self {
        self.row.needs.extend(needs);
        self
    }

    /// It has [`FEW_ROUNDS`].
    pub(crate) fn with_few_rounds(mut self) -> Self {
        self.rounds = FEW_ROUNDS;
        self
    }

    /// Its rounds are long enough to average over the scheduler's decisions.
    pub(crate) fn with_long_rounds(mut self) -> Self {
        self.side_of_round = SIDE_OF_LONG_ROUND;
        self
    }

    /// Both sides work one after the other, so that a second processor only adds the time it takes to wake it.
    pub(crate) fn on_one_processor(mut self) -> Self {
        self.on_one_processor = true;
        self
    }

    /// Runs every round, whatever comes out.
    pub(crate) fn run(self) -> Result<Measurement, Fault> {
        let mut contest = (self.prepare)()?;
        let _held = if self.on_one_processor { Some(OneProcessor::hold()?) } else { None };
        let pace = contest.pace(self.side_of_round)?;
        for _ in 0..WARM_UP_ROUNDS {
            contest.round(pace)?;
        }
        let rounds = (0..self.rounds).map(|_| contest.round(pace));
        let rounds = rounds.collect::<Result<Vec<Round>, Fault>>()?;
        let ratio = Summary::from_values(rounds.iter().map(|round| round.ratio()));
        Ok(Measurement {
            unit: contest.unit(),
            ours: median(rounds.iter().map(|round| round.ours)),
            reference: median(rounds.iter().map(|round| round.reference)),
            ratio: ratio.ok_or("no round was measured")?,
            allocations: contest.allocations()?,
        })
    }
}

/// How much is done in a round; found once, before the first.
#[derive(Clone, Copy)]
struct Pace {
    our_calls: u32,
    reference_calls: u32,
    /// How often the four turns of a round are repeated.
    repetitions: u32,
}

impl Contest {
    fn unit(&self) -> Unit {
        match self {
            Contest::Time { .. } | Contest::Cost { .. } => Unit::Seconds,
            Contest::Size { .. } => Unit::Bytes,
            Contest::Together { unit, .. } => *unit,
        }
    }

    fn pace(&mut self, side_of_round: Duration) -> Result<Pace, Fault> {
        let mut pace = Pace { our_calls: 1, reference_calls: 1, repetitions: 1 };
        match self {
            Contest::Time { ours, reference } => {
                let (our_turn, reference_turn);
                (pace.our_calls, our_turn) = calls_per_turn(ours)?;
                (pace.reference_calls, reference_turn) = calls_per_turn(reference)?;
                pace.repetitions = repetitions(side_of_round, our_turn + reference_turn);
            }
            Contest::Cost { ours, reference } => {
                let started = SystemClock.monotonic();
                ours()?;
                reference()?;
                let pair = SystemClock.monotonic().saturating_sub(started);
                pace.repetitions = repetitions(side_of_round, pair);
            }
            // Bytes do not become more exact, and a race that measures both sides itself knows how long to do so.
            Contest::Size { .. } | Contest::Together { .. } => {}
        }
        Ok(pace)
    }

    fn round(&mut self, pace: Pace) -> Result<Round, Fault> {
        match self {
            Contest::Time { ours, reference } => alternate(
                pace.repetitions,
                || time(ours, pace.our_calls),
                || time(reference, pace.reference_calls),
            ),
            Contest::Cost { ours, reference } => {
                alternate(pace.repetitions, || Ok(ours()?.as_secs_f64()), || Ok(reference()?.as_secs_f64()))
            }
            Contest::Size { ours, reference } => {
                Ok(Round { ours: bytes(ours()?), reference: bytes(reference()?) })
            }
            Contest::Together { both, .. } => both(),
        }
    }

    fn allocations(&mut self) -> Result<Option<(u64, u64)>, Fault> {
        match self {
            Contest::Time { ours, reference } => Ok(Some((
                count_allocations(ours, allocations::count)?,
                count_allocations(reference, allocations::count)?,
            ))),
            Contest::Cost { .. } | Contest::Size { .. } | Contest::Together { .. } => Ok(None),
        }
    }
}

/// Ours, reference, reference, ours, and so on; the mean of each side's turns.
fn alternate(
    repetitions: u32,
    mut ours: impl FnMut() -> Result<f64, Fault>,
    mut reference: impl FnMut() -> Result<f64, Fault>,
) -> Result<Round, Fault> {
    let mut total = Round::default();
    for _ in 0..repetitions {
        total.ours += ours()?;
        total.reference += reference()?;
        total.reference += reference()?;
        total.ours += ours()?;
    }
    let turns = f64::from(repetitions) * 2.0;
    Ok(Round { ours: total.ours / turns, reference: total.reference / turns })
}

/// How often a pair of turns of this length is taken twice until each side has had its time.
fn repetitions(side_of_round: Duration, pair: Duration) -> u32 {
    let repetitions = side_of_round.as_nanos() / pair.as_nanos().max(1);
    u32::try_from(repetitions).unwrap_or(u32::MAX).clamp(1, 10_000)
}

/// Seconds per call, averaged over a turn.
fn time(contestant: &mut Contestant, calls: u32) -> Result<f64, Fault> {
    Ok(turn(contestant, calls)?.as_secs_f64() / f64::from(calls.max(1)))
}

fn turn(contestant: &mut Contestant, calls: u32) -> Result<Duration, Fault> {
    let started = SystemClock.monotonic();
    for _ in 0..calls {
        contestant()?;
    }
    Ok(SystemClock.monotonic().saturating_sub(started))
}

/// As many calls as fill a turn, and how long they take.
fn calls_per_turn(contestant: &mut Contestant) -> Result<(u32, Duration), Fault> {
    let mut calls = 1_u32;
    loop {
        let taken = turn(contestant, calls)?;
        if taken >= TURN || calls > u32::MAX / 2 {
            return Ok((calls, taken));
        }
        calls *= 2;
    }
}

/// What a call allocates by itself: other threads of the process also do now and then, so that the least of some calls
/// counts.
fn count_allocations(
    mut contestant: impl FnMut() -> Result<(), Fault>,
    allocated: impl Fn() -> u64,
) -> Result<u64, Fault> {
    let mut least = u64::MAX;
    for _ in 0..COUNTED_CALLS {
        let before = allocated();
        contestant()?;
        least = least.min(allocated() - before);
    }
    Ok(least)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn bytes(count: u64) -> f64 {
    count as f64
}

/// Something that several races share, made when the first of them is run.
pub(crate) struct Shared<T> {
    made: Rc<OnceCell<Rc<T>>>,
    make: fn() -> Result<T, Fault>,
}

impl<T> Shared<T> {
    pub(crate) fn new(make: fn() -> Result<T, Fault>) -> Self {
        Shared { made: Rc::default(), make }
    }

    pub(crate) fn get(&self) -> Result<Rc<T>, Fault> {
        if let Some(made) = self.made.get() {
            return Ok(Rc::clone(made));
        }
        let made = Rc::new((self.make)()?);
        Ok(Rc::clone(self.made.get_or_init(|| made)))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared { made: Rc::clone(&self.made), make: self.make }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn together(name: &'static str, rounds: Vec<(f64, f64)>) -> Race {
        Race::new(name, 1.0, move || {
            let mut rounds = rounds.into_iter();
            let both = move || {
                let (ours, reference) = rounds.next().ok_or("one round too many")?;
                Ok(Round { ours, reference })
            };
            Ok(Contest::Together { unit: Unit::Times, both: Box::new(both) })
        })
    }

    #[test]
    fn race_runs_a_fixed_number_of_rounds_and_discards_the_warm_up_whatever_it_says() {
        // The warm-up round would win the race; every other one loses it.
        let mut rounds = vec![(0.01, 1.0)];
        rounds.extend([(2.0, 1.0); ROUNDS]);
        let measured = together("fixed", rounds).run().unwrap();
        let Summary { median, least, most, .. } = measured.ratio;
        assert_eq!((median, least, most), (2.0, 2.0, 2.0));
        let short = vec![(0.01, 1.0); ROUNDS];
        assert_eq!(together("short", short).run().unwrap_err().to_string(), "one round too many");
        const { assert!(ROUNDS % 2 == 1 && ROUNDS >= 5 && FEW_ROUNDS % 2 == 1 && FEW_ROUNDS >= 5) };
    }

    #[test]
    fn median_decides_even_if_the_best_round_holds() {
        let mut rounds = vec![(1.0, 1.0)];
        rounds.extend([(0.5, 1.0); ROUNDS / 2]);
        rounds.extend([(1.5, 1.0); ROUNDS / 2 + 1]);
        let measured = together("lost", rounds).run().unwrap();
        let Summary { median, least, most, .. } = measured.ratio;
        assert_eq!((median, least, most), (1.5, 0.5, 1.5));
    }

    #[test]
    fn sides_follow_each_other_as_ours_reference_reference_ours() {
        let order = RefCell::new(String::new());
        let side = |letter| {
            order.borrow_mut().push(letter);
            Ok(if letter == 'a' { 1.0 } else { 2.0 })
        };
        let round = alternate(2, || side('a'), || side('b')).unwrap();
        assert_eq!((order.borrow().as_str(), round), ("abbaabba", Round { ours: 1.0, reference: 2.0 }));
    }

    #[test]
    fn drift_and_whatever_the_first_leaves_to_the_second_are_shared_equally() {
        // Each turn takes one more than the one before it, whichever side has it.
        let clock = RefCell::new(0.0);
        let tick = || {
            *clock.borrow_mut() += 1.0;
            Ok(*clock.borrow())
        };
        let round = alternate(3, tick, tick).unwrap();
        assert_eq!(round.ratio(), 1.0);
    }

    #[test]
    fn race_counts_what_each_call_allocates() {
        let prepare = || {
            let ours = || {
                std::hint::black_box(vec![1_u8; 100]);
                Ok(())
            };
            Ok(Contest::time(ours, || Ok(())))
        };
        let race = Race::new("allocation", f64::MAX, prepare).with_few_rounds();
        let (ours, _) = race.run().unwrap().allocations.unwrap();
        // Other tests of this process allocate meanwhile.
        assert!(ours >= 1, "{ours}");
    }

    #[test]
    fn call_with_the_fewest_allocations_counts() {
        let allocated = Cell::new(1000);
        let mut of_other_threads = [5, 0, 7].into_iter().cycle();
        let call = || {
            allocated.set(allocated.get() + 3 + of_other_threads.next().unwrap());
            Ok(())
        };
        assert_eq!(count_allocations(call, || allocated.get()).unwrap(), 3);
    }

    #[test]
    fn race_of_sizes_takes_the_median_of_each_side() {
        let prepare = || {
            let mut sizes = [9_u64 << 20, 3 << 20, 1 << 20, 2 << 20, 2 << 20, 8 << 20].into_iter();
            let ours = move || sizes.next().ok_or_else(|| "measured once too often".into());
            Ok(Contest::sizes(ours, || Ok(4 << 20)))
        };
        let measured = Race::new("memory", 0.5, prepare).with_few_rounds().run().unwrap();
        assert_eq!((measured.ours, measured.ratio.median), (f64::from(2 << 20), 0.5));
        assert_eq!((measured.ratio.least, measured.ratio.most), (0.25, 2.0));
    }

    #[test]
    fn side_that_fails_stops_the_race() {
        let race = Race::new("broken", 1.0, || Ok(Contest::time(|| Err("no such thing".into()), || Ok(()))));
        assert_eq!(race.run().unwrap_err().to_string(), "no such thing");
    }

    #[test]
    fn what_races_share_is_made_once_and_only_when_needed() {
        thread_local!(static MADE: RefCell<u32> = const { RefCell::new(0) });
        let shared = Shared::new(|| {
            MADE.with_borrow_mut(|made| *made += 1);
            Ok("stage")
        });
        let race = Race::new("unused", 1.0, {
            let shared = shared.clone();
            move || shared.get().map(|_| Contest::time(|| Ok(()), || Ok(())))
        });
        assert_eq!(MADE.with_borrow(|made| *made), 0);
        drop(race);
        assert_eq!((*shared.get().unwrap(), *shared.get().unwrap()), ("stage", "stage"));
        assert_eq!(MADE.with_borrow(|made| *made), 1);
    }
}
