//! Compares the local clock with the server's.

use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use http::header::DATE;
use navicert_types::{Clock, Timestamp};

use super::connection::Reached;
use super::report::{DoctorStep, ReportBuilder};

/// With a larger difference, valid tokens look expired or not yet valid.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(30);

/// The difference between the local clock and the server's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skew {
    by: Duration,
    ahead: bool,
}

impl Skew {
    /// Compares the `Date` of a response with the clock. Call it when the response arrives, not later: what runs in
    /// between would count as skew.
    pub(super) fn measure(clock: &dyn Clock, headers: &HeaderMap) -> Option<Self> {
        let date = headers.get(DATE)?.to_str().ok()?;
        let server = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
        Some(Skew::between(clock.now(), server))
    }

    fn between(here: Timestamp, server: Timestamp) -> Self {
        let by = here.duration_since(server);
        Skew { by: by.unsigned_abs(), ahead: by.is_positive() }
    }

    pub(super) fn new(by: Duration, ahead: bool) -> Self {
        Skew { by, ahead }
    }

    pub(super) fn is_large(&self) -> bool {
        self.by > MAX_CLOCK_SKEW
    }
}

impl Skew {
    /// Amount and direction.
    pub(super) fn amount(&self) -> String {
        let seconds = self.by.as_secs();
        let (amount, unit) = match seconds {
            0..120 => (seconds, "seconds"),
            120..7_200 => ((seconds + 30) / 60, "minutes"),
            7_200..172_800 => ((seconds + 1_800) / 3_600, "hours"),
            _ => ((seconds + 43_200) / 86_400, "days"),
        };
        let relation = if self.ahead { "ahead" } else { "behind" };
        format!("{amount} {unit} {relation}")
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.ahead { " of" } else { "" };
        write!(f, "{}{of} the server's", self.amount())
    }
}

/// Reports the difference measured when the server responded.
pub(super) fn compare(reached: &Reached, report: &mut ReportBuilder<'_>) {
    match reached.skew {
        None => report.skip(DoctorStep::Clock, "the server sent no Date header"),
        Some(skew) if skew.is_large() => {
            report.warn(DoctorStep::Clock, format!("local clock is {skew}"), "correct the local clock");
        }
        Some(_) => report.pass(DoctorStep::Clock, "local clock agrees with the server's"),
    }
}
