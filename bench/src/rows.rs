//! One row of the race against Kubernetes' own code: `navicert-bench --json ROW` (see peers/README.md).
//!
//! Rows are measured as Go's benchmarks measure theirs: one mean over a tenth of a second, on one core; what computes by
//! its CPU time, what waits for a plugin by the clock. The race calls both sides in turns for a fixed number of rounds and
//! takes the median of the rounds' ratios. A row does the work that `peers/bench/*_test.go` does under its name.

mod exec;
mod image;
mod kubeconfig;
mod token;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use navicert_testkit::k8s::vectors;
use navicert_types::{Clock, SystemClock};
use rustix::time::{ClockId, clock_gettime};

use crate::allocations;
use crate::race::{Contestant, Fault};
use crate::statistics::Summary;

/// How long a row is measured, as Go's `-test.benchtime`.
const LENGTH: Duration = Duration::from_millis(100);
/// Equal parts of that, whose median and range are printed beside the mean.
const PARTS: u32 = 5;

/// A row's name, and the constructor of its contestant.
pub(crate) type Row = (&'static str, fn() -> Result<Contestant, Fault>);

/// The cost of one call.
#[derive(Debug)]
pub(crate) struct Measurement {
    /// The mean, as Go's benchmarks give it.
    nanoseconds: f64,
    /// Nanoseconds of the parts.
    parts: Summary,
    allocations: f64,
    bytes: f64,
}

/// Measures one row and returns the result as one line of JSON; `None` for an unknown row.
pub(crate) fn line(name: &str) -> Result<Option<String>, Fault> {
    let Some((name, make)) = all().find(|row| row.0 == name) else {
        return Ok(None);
    };
    let waits = matches!(*name, "exec-run" | "exec-spawn");
    let measured = measure(&mut make()?, if waits { by_the_clock } else { on_the_cpu })?;
    Ok(Some(format!("{{\"row\": \"{name}\", {measured}}}")))
}

fn all() -> impl Iterator<Item = &'static Row> {
    let rows: [&[Row]; 5] = [&crate::cel::ROWS, &exec::ROWS, &image::ROWS, &kubeconfig::ROWS, &token::ROWS];
    rows.into_iter().flatten()
}

/// As many calls as fill the time, found by doubling.
fn measure(contestant: &mut Contestant, time: fn() -> Duration) -> Result<Measurement, Fault> {
    let mut calls_per_part = 1_u32;
    loop {
        let (count, bytes) = (allocations::count(), allocations::bytes());
        let mut parts = [Duration::ZERO; PARTS as usize];
        for part in &mut parts {
            let started = time();
            for _ in 0..calls_per_part {
                contestant()?;
            }
            *part = time().saturating_sub(started);
        }
        let (count, bytes) = (allocations::count() - count, allocations::bytes() - bytes);
        let taken: Duration = parts.iter().sum();
        if taken >= LENGTH || calls_per_part > u32::MAX / PARTS / 2 {
            let calls = calls_per_part * PARTS;
            let each = |part: Duration| part.as_secs_f64() * 1e9 / f64::from(calls_per_part);
            return Ok(Measurement {
                nanoseconds: taken.as_secs_f64() * 1e9 / f64::from(calls),
                parts: Summary::from_values(parts.map(each)).ok_or("nothing was measured")?,
                allocations: per_call(count, calls),
                bytes: per_call(bytes, calls),
            });
        }
        calls_per_part *= 2;
    }
}

fn by_the_clock() -> Duration {
    SystemClock.monotonic()
}

/// What this program has used so far. On a busy machine the clock measures its neighbours.
fn on_the_cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.try_into().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_call(all: u64, calls: u32) -> f64 {
    all as f64 / f64::from(calls)
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measurement { nanoseconds, parts: Summary { median, least, most, .. }, allocations, bytes } =
            self;
        write!(f, "\"ns\": {nanoseconds:.1}, \"median_ns\": {median:.1}, ")?;
        write!(f, "\"least_ns\": {least:.1}, \"most_ns\": {most:.1}, ")?;
        write!(f, "\"allocations\": {allocations:.2}, \"bytes\": {bytes:.1}")
    }
}

/// A file of the race's inputs.
fn input(name: &str) -> Result<String, Fault> {
    let path = vectors::dir().join("bench").join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}

/// The static plugin of the exec rows, which `make race` builds beside the Go programs.
fn race_plugin() -> Result<PathBuf, Fault> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("this program lies nowhere")?;
    let plugin = target.join("peers/bin/race-plugin");
    if plugin.exists() { Ok(plugin) } else { Err("no race-plugin: `make race` builds it".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_one_line_of_json_with_mean_median_and_range() {
        let line = line("cel-claim").unwrap().unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["row"], "cel-claim");
        let [mean, median, least, most] =
            ["ns", "median_ns", "least_ns", "most_ns"].map(|name| parsed[name].as_f64().unwrap());
        assert!(0.0 < least && least <= median && median <= most, "{line}");
        assert!(least <= mean && mean <= most, "{line}");
        // How many there are says `make race`, alone in its process; here other tests allocate beside it.
        assert!(parsed["allocations"].is_number() && parsed["bytes"].is_number(), "{line}");
    }

    #[test]
    fn unknown_row_is_none() {
        assert!(line("cel").unwrap().is_none());
    }

    #[test]
    fn allocations_and_bytes_are_counted_per_call() {
        let mut contestant: Contestant = Box::new(|| {
            std::hint::black_box(vec![1_u8; 100]);
            Ok(())
        });
        let measured = measure(&mut contestant, on_the_cpu).unwrap();
        // Other tests of this process may allocate meanwhile.
        assert!(measured.allocations >= 1.0 && measured.bytes >= 100.0, "{measured:?}");
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = all().map(|row| row.0).collect();
        assert_eq!((names.len(), all().count()), (28, 28));
    }
}
