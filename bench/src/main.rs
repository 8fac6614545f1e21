//! `make bench`: races ours against a reference and prints one table of ratios.
//!
//! One file per area, each with a `races()` that is listed in [`AREAS`]; [`race`] measures, [`table`] judges and prints.
//! Absolute times are shown but never judged: a ratio means the same on every machine. docs/benchmarks.md says how it is
//! measured and what came out.

mod affinity;
mod allocations;
mod authn;
mod cel;
mod client;
mod fault;
mod gateway;
mod image;
mod login;
mod needs;
mod plugin;
mod proxy;
mod race;
mod registries;
mod rows;
mod signer;
mod statistics;
mod table;
mod webhook;

use std::io::{self, Write};
use std::process::ExitCode;

use navicert_types::{Clock, SystemClock};

use race::{Fault, Group, Race};
use table::{Line, Table};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Where races come from. A new area adds its file above and its line here.
const AREAS: [fn() -> Vec<Race>; 11] = [
    plugin::races,
    cel::races,
    client::races,
    image::races,
    login::races,
    gateway::races,
    proxy::races,
    signer::races,
    authn::races,
    registries::races,
    webhook::races,
];

const HELP: &str = "\
usage: navicert-bench [--markdown] [TEXT]   measure the rows whose name contains TEXT [default: all]
       navicert-bench --list                rows, limits and what each needs; measures nothing
       navicert-bench --needs               where each program of bench/needs.list was found
       navicert-bench --json ROW            one row of `make race` as a line of JSON; nothing for an unknown row

Ends with 0 if every row that was measured holds, 1 if one is broken, 2 if one failed to run, 3 if all were skipped.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["--help" | "-h"] => print(HELP),
        ["--list"] => print(&list()),
        ["--needs"] => print(&needs::report()),
        ["--json", row] => json(row),
        [] => bench("", false),
        ["--markdown"] => bench("", true),
        ["--markdown", text] if !text.starts_with('-') => bench(text, true),
        [text] if !text.starts_with('-') => bench(text, false),
        _ => Err(HELP.into()),
    };
    outcome.unwrap_or_else(|fault| {
        let _ = writeln!(io::stderr(), "navicert-bench: {fault}");
        ExitCode::from(2)
    })
}

fn print(text: &str) -> Result<ExitCode, Fault> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// One row of the race; an unknown row is not an error.
fn json(name: &str) -> Result<ExitCode, Fault> {
    match rows::line(name)? {
        Some(line) => print(&format!("{line}\n")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn all() -> Vec<Race> {
    AREAS.into_iter().flat_map(|races| races()).collect()
}

/// Every row with its limit, one per line.
fn list() -> String {
    let groups = groups(&all(), "").into_iter().map(|group| format!("{} ≤ {:.2}\n", group.name, group.limit));
    let row = |race: Race| {
        let missing = race.row.missing().map(|reason| format!("  ({reason})")).unwrap_or_default();
        format!("{} {}{missing}\n", race.row.name, table::limit(&race.row))
    };
    all().into_iter().map(row).chain(groups).collect()
}

/// Groups whose rows are all picked.
fn groups(races: &[Race], picked: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = races.iter().filter_map(|race| race.row.group).collect();
    groups.dedup();
    let is_whole = |group: &Group| {
        let mut rows = races.iter().filter(|race| race.row.group == Some(*group));
        rows.all(|race| race.row.name.contains(picked))
    };
    groups.into_iter().filter(is_whole).collect()
}

/// Measures the picked rows, whatever becomes of each, and then says which limits were broken.
fn bench(picked: &str, as_markdown: bool) -> Result<ExitCode, Fault> {
    let started = SystemClock.monotonic();
    let mut races = all();
    let mut table = Table::new(groups(&races, picked));
    races.retain(|race| race.row.name.contains(picked));
    if races.is_empty() {
        return Err(format!("no row's name contains `{picked}` (--list shows all)").into());
    }
    if let Some(code) = signer::with_a_token(&races)? {
        return Ok(code);
    }
    announce(&races)?;
    let count = races.len();
    for (number, race) in races.into_iter().enumerate() {
        let row = race.row.clone();
        writeln!(io::stderr(), "[{}/{count}] {}", number + 1, row.name)?;
        let line = match row.missing() {
            Some(reason) => Line::skipped(row, reason),
            None => match race.run() {
                Ok(measurement) => Line::measured(row, measurement),
                Err(fault) => Line::failed(row, &fault.to_string()),
            },
        };
        writeln!(io::stderr(), "    {line}")?;
        table.push(line);
    }
    let text = if as_markdown { table.markdown() } else { table.to_string() };
    writeln!(io::stdout(), "{text}")?;
    let mut has_failed = table.has_failed();
    if "authn: expressions".contains(picked) {
        match authn::effect() {
            Ok(text) => writeln!(io::stdout(), "{text}")?,
            Err(fault) => {
                has_failed = true;
                writeln!(
                    io::stdout(),
                    "FAILED: how expressions affect the time of authentication: {fault}\n"
                )?;
            }
        }
    }
    let seconds = SystemClock.monotonic().saturating_sub(started).as_secs();
    writeln!(io::stdout(), "{}; {} min {} s", table.summary(), seconds / 60, seconds % 60)?;
    let code = if has_failed {
        2
    } else if table.is_broken() {
        1
    } else if table.is_empty() {
        3
    } else {
        0
    };
    Ok(ExitCode::from(code))
}

/// Before the work begins: what will be measured, and what will not.
fn announce(races: &[Race]) -> io::Result<()> {
    let missing: Vec<String> = races.iter().filter_map(|race| race.row.missing()).collect();
    let mut stderr = io::stderr();
    writeln!(
        stderr,
        "{} of {} rows can be measured: {} rounds each after a warm-up, the median counts",
        races.len() - missing.len(),
        races.len(),
        race::ROUNDS
    )?;
    for (reason, rows) in table::reasons(missing.iter().map(String::as_str)) {
        writeln!(stderr, "skipping {rows} row{}: {reason}", if rows == 1 { "" } else { "s" })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_limits() {
        let races = all();
        let names: std::collections::BTreeSet<&str> = races.iter().map(|race| race.row.name).collect();
        assert_eq!(names.len(), races.len());
        assert!(races.iter().all(|race| race.row.limit > 0.0 && race.row.limit.is_finite()));
    }

    #[test]
    fn what_rows_need_is_in_the_list_and_nothing_else_is() {
        let needed: std::collections::BTreeSet<&str> = all()
            .iter()
            .flat_map(|race| race.row.needs.clone())
            .filter_map(|need| match need {
                needs::Need::Installed(name) => Some(name),
                needs::Need::Built(_) => None,
            })
            .collect();
        let report = needs::report();
        let listed = report.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(needed, listed);
    }

    #[test]
    fn group_counts_only_if_each_of_its_rows_is_picked() {
        let races = all();
        assert_eq!(groups(&races, "").len(), 1);
        assert_eq!(groups(&races, "cel eval").len(), 1);
        assert_eq!(groups(&races, "cel eval: one claim").len(), 0);
    }

    #[test]
    fn documentation_lists_every_row_with_its_limit() {
        let page = include_str!("../../docs/benchmarks.md");
        let documented: Vec<&str> = page.lines().filter(|line| line.contains("| ≤ ")).collect();
        let races = all();
        let mut expected: Vec<String> =
            races.iter().map(|race| format!("| {} | {} |", race.row.name, table::limit(&race.row))).collect();
        let groups = groups(&races, "");
        expected.extend(groups.iter().map(|group| format!("| {} | ≤ {:.2} |", group.name, group.limit)));
        assert_eq!(documented.len(), expected.len(), "rows in docs/benchmarks.md");
        for (line, expected) in documented.iter().zip(&expected) {
            assert!(
                line.starts_with(expected.as_str()),
                "docs/benchmarks.md: expected `{expected}` in `{line}`"
            );
        }
    }
}
