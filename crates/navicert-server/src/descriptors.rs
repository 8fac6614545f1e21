//! Raises the limit on open file descriptors as far as a server's limits need. Many systems default to 1,024 and
//! allow more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::ServerLimits;

/// Descriptors for files, probes, issuers and everything else besides connections.
const RESERVED_DESCRIPTORS: u64 = 1_024;

/// Minimum of that.
const MIN_RESERVED_DESCRIPTORS: u64 = 64;

/// Raises the soft limit to what these limits need: two descriptors per connection (client and API server), plus a
/// reserve. Not higher, because child processes inherit the limit and some iterate over all possible descriptors.
///
/// Returns the limits that are possible: if the hard limit is too low, a quarter of the descriptors (at least 64)
/// stays reserved.
pub fn raise_limit(limits: ServerLimits) -> ServerLimits {
    let wanted = u64::try_from(limits.connections)
        .unwrap_or(u64::MAX)
        .saturating_mul(2)
        .saturating_add(RESERVED_DESCRIPTORS);
    let had = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: Some(new_soft_limit(had, wanted)), maximum: had.maximum };
    if had.current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(event = "nofile_limit_raise_failed", %error, "failed to raise the limit on open files");
    }
    let fitted = fit_to(limits, getrlimit(Resource::Nofile).current);
    if fitted.connections < limits.connections {
        tracing::warn!(
            event = "connection_limit_reduced",
            connections = fitted.connections,
            wanted = limits.connections,
            "hard limit on open files (`ulimit -Hn`) is too low for `limits.connections`, using fewer connections"
        );
    }
    fitted
}

/// The new soft limit.
fn new_soft_limit(had: Rlimit, wanted: u64) -> u64 {
    let wanted = had.current.map_or(wanted, |current| current.max(wanted));
    had.maximum.map_or(wanted, |maximum| maximum.min(wanted))
}

/// Fits the limits to a number of descriptors; `None` means unlimited.
fn fit_to(limits: ServerLimits, open: Option<u64>) -> ServerLimits {
    let limit = open.map_or(u64::MAX, |open| open.saturating_sub((open / 4).max(MIN_RESERVED_DESCRIPTORS)));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
    ServerLimits { connections: limits.connections.min(limit), ..limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raises_the_limit_as_far_as_needed_and_allowed() {
        for (current, maximum, expected) in [
            (Some(1_024), Some(524_288), 21_024),
            (Some(1_024), Some(4_096), 4_096),
            (Some(65_536), Some(65_536), 65_536),
            (Some(1_024), None, 21_024),
            (None, None, 21_024),
        ] {
            assert_eq!(
                new_soft_limit(Rlimit { current, maximum }, 21_024),
                expected,
                "{current:?} of {maximum:?}"
            );
        }
    }

    #[test]
    fn reserves_a_quarter_of_the_descriptors() {
        for (open, expected) in [
            (Some(21_024), 10_000),
            (Some(10_000), 7_500),
            (Some(1_024), 768),
            (Some(128), 64),
            (Some(9), 1),
            (None, 10_000),
        ] {
            assert_eq!(fit_to(ServerLimits::default(), open).connections, expected, "{open:?}");
        }
    }
}
