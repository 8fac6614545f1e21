//! `make bench`: races ours against a reference and prints one table of ratios.
//!
//! One file per area, each with a `races()` that is listed in [`AREAS`]; [`frame`] measures and judges. Absolute times
//! are shown but never judged: a ratio means the same on every machine. Exits with 1 if a ratio breaks its limit on
//! every attempt, with 2 if a race could not be run. An argument picks the races whose name contains it;
//! `--json ROW` measures one row for `make race` instead, and prints nothing if there is no such row ([`rows`]).

mod allocations;
mod authn;
mod cel;
mod client;
mod frame;
mod gateway;
mod image;
mod plugin;
mod proxy;
mod registries;
mod rows;
mod signer;
mod webhook;

use std::io::{self, Write};
use std::process::ExitCode;

use frame::{Fault, Race, Table};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Where races come from. A new area adds its file above and its line here.
const AREAS: [(&str, Area); 10] = [
    ("plugin", plugin::races),
    ("cel", cel::races),
    ("client", client::races),
    ("image", image::races),
    ("gateway", gateway::races),
    ("proxy", proxy::races),
    ("signer", signer::races),
    ("authn", authn::races),
    ("registries", registries::races),
    ("webhook", webhook::races),
];

type Area = fn() -> Result<Vec<Race>, Fault>;

fn main() -> ExitCode {
    if let Some(code) = signer::with_a_token() {
        return code;
    }
    let picked = std::env::args().nth(1).unwrap_or_default();
    let outcome = if picked == "--json" { row() } else { run(&picked).map(|table| table.all_hold()) };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(fault) => {
            let _ = writeln!(io::stderr(), "bench: {fault}");
            ExitCode::from(2)
        }
    }
}

/// One row of the race; a row that is not there is no fault.
fn row() -> Result<bool, Fault> {
    let name = std::env::args().nth(2).ok_or("--json wants a row")?;
    if let Some(line) = rows::line(&name)? {
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(true)
}

fn run(picked: &str) -> Result<Table, Fault> {
    let mut table = Table::default();
    // `signer:` picks one area, and the others are not even set up.
    let only = AREAS.into_iter().map(|(name, _)| name).find(|name| picked.starts_with(&format!("{name}:")));
    for (_, races) in AREAS.into_iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        for race in races()?.into_iter().filter(|race| race.what.contains(picked)) {
            let what = race.what;
            let _ = writeln!(io::stderr(), "racing: {what}");
            table.push(race.run().map_err(|fault| format!("{what}: {fault}"))?);
        }
    }
    writeln!(io::stdout(), "{table}")?;
    if "authn: expressions".contains(picked) {
        writeln!(io::stdout(), "{}", authn::effect()?)?;
    }
    Ok(table)
}
