//! Debian's `h2load` (package nghttp2-client): a standard HTTP/2 load generator.

use std::path::Path;

use crate::cli::program::Program;
use crate::cli::tools;
use crate::wait;

const PACKAGE: &str = "nghttp2-client";
const PROGRAM: &str = "h2load";

/// The request, and the number of clients.
#[derive(Clone, Debug)]
pub struct H2load<'l> {
    /// The URL to request.
    pub url: &'l str,
    /// With this `Authorization`, if any.
    pub authorization: Option<&'l str>,
    /// With the bytes of this file as a POST of JSON, if any.
    pub body: Option<&'l Path>,
    /// So many requests in all.
    pub requests: usize,
    /// Over so many connections.
    pub clients: usize,
    /// So many at a time on each.
    pub streams: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counts {
    /// Responses with a 2xx or 3xx status.
    pub good: usize,
    /// Responses with a 4xx status, for example 429.
    pub refused: usize,
    /// Responses with a 5xx status, and requests without a response.
    pub bad: usize,
}

impl H2load<'_> {
    /// Whether it is installed; if not, that is reported as skipped.
    ///
    /// # Panics
    /// If it is not installed and nothing may be skipped.
    pub fn is_installed() -> bool {
        tools::installed(PACKAGE, PROGRAM).is_some()
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started, does not end, or does not say what came of it.
    pub fn run(&self) -> Counts {
        let mut program = Program::new(PROGRAM)
            .arguments(["-n", &self.requests.to_string(), "-c", &self.clients.to_string()])
            .arguments(["-m", &self.streams.to_string(), self.url])
            .limit(20 * wait::LIMIT);
        if let Some(authorization) = self.authorization {
            program = program.arguments(["-H".to_owned(), format!("authorization: {authorization}")]);
        }
        if let Some(body) = self.body {
            program = program.arguments(["-H", "content-type: application/json", "-d"]).arguments([body]);
        }
        let outcome = program.run().expect("h2load can be started");
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let counts = counts(&said).unwrap_or_else(|| panic!("h2load said: {said}"));
        assert_eq!(counts.good + counts.refused + counts.bad, self.requests, "{said}");
        counts
    }
}

/// `requests: 9 total, 9 started, 9 done, …` and `status codes: 8 2xx, 0 3xx, 1 4xx, 0 5xx`.
fn counts(said: &str) -> Option<Counts> {
    let number = |line: &str, name: &str| -> Option<usize> {
        let part = said.lines().find_map(|said| said.strip_prefix(line))?;
        let part = part.split(',').find_map(|part| part.trim().strip_suffix(name))?;
        part.trim().parse().ok()
    };
    let (good, refused) = (number("status codes:", "2xx")?, number("status codes:", "4xx")?);
    let bad = number("requests:", "total")?.checked_sub(good + refused)?;
    Some(Counts { good, refused, bad })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_h2load_says_is_read() {
        let said = "finished in 20ms\nrequests: 12 total, 12 started, 11 done, 9 succeeded, 3 failed, 1 errored, 0 timeout\n\
                    status codes: 9 2xx, 0 3xx, 1 4xx, 1 5xx\n";
        assert_eq!(counts(said), Some(Counts { good: 9, refused: 1, bad: 2 }));
        assert_eq!(counts("no route"), None);
    }
}
