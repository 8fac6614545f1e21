//! As many open files as a server's limits need. Many systems start programs with room for 1,024, and let them take more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::Limits;

/// For files, probes, issuers and what else is open beside connections.
const BESIDES: u64 = 1_024;

/// The least of that.
const LEAST_BESIDES: u64 = 64;

/// Lets this process have the open files these limits need: two for each connection, its own and one to the API server, and
/// some besides. No more than that: programs we start get the same, and some of them look at every one they might have.
///
/// Gives the limits that can be kept: where the system does not let us have so many, a quarter of them stays for everything
/// but connections, and no fewer than 64.
pub fn provide(limits: Limits) -> Limits {
    let wanted =
        u64::try_from(limits.connections).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(BESIDES);
    let had = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: Some(raised(had, wanted)), maximum: had.maximum };
    if had.current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the number of open files cannot be raised");
    }
    let kept = keep(limits, getrlimit(Resource::Nofile).current);
    if kept.connections < limits.connections {
        tracing::warn!(
            connections = kept.connections,
            wanted = limits.connections,
            "the system lets this process have too few open files (`ulimit -Hn`) for `limits.connections`"
        );
    }
    kept
}

/// What the limit is set to.
fn raised(had: Rlimit, wanted: u64) -> u64 {
    let wanted = had.current.map_or(wanted, |current| current.max(wanted));
    had.maximum.map_or(wanted, |maximum| maximum.min(wanted))
}

/// The limits that so many open files allow; `None`: any number.
fn keep(limits: Limits, open: Option<u64>) -> Limits {
    let most = open.map_or(u64::MAX, |open| open.saturating_sub((open / 4).max(LEAST_BESIDES)));
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    Limits { connections: limits.connections.min(most), ..limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed_and_never_lowered() {
        for (current, maximum, expected) in [
            (Some(1_024), Some(524_288), 21_024),
            (Some(1_024), Some(4_096), 4_096),
            (Some(65_536), Some(65_536), 65_536),
            (Some(1_024), None, 21_024),
            (None, None, 21_024),
        ] {
            assert_eq!(raised(Rlimit { current, maximum }, 21_024), expected, "{current:?} of {maximum:?}");
        }
    }

    #[test]
    fn a_quarter_of_the_open_files_is_not_for_connections() {
        for (open, expected) in [
            (Some(21_024), 10_000),
            (Some(10_000), 7_500),
            (Some(1_024), 768),
            (Some(128), 64),
            (Some(9), 1),
            (None, 10_000),
        ] {
            assert_eq!(keep(Limits::default(), open).connections, expected, "{open:?}");
        }
    }
}
