//! The results of test suites, as a report.

use std::fmt;

use navicert_types::redact::terminal;
use serde::Serialize;

use crate::suite::{CaseReport, Coverage, Difference, SuiteReport};

/// The result of `authn test`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestReport {
    /// Whether every case passes and, with `--require-coverage`, every rule and mapping is covered.
    pub passes: bool,
    /// The suites, in the order of the command line.
    pub suites: Vec<SuiteResult>,
}

/// The result of one suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuiteResult {
    /// The path of the suite.
    pub suite: String,
    /// Whether every case passes.
    pub passes: bool,
    /// Every case, in order.
    pub cases: Vec<CaseResult>,
    /// Coverage; `null` unless every case passes.
    pub coverage: Option<Coverage>,
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// Whether it passes.
    pub passes: bool,
    /// Differences between expectation and outcome.
    pub differences: Vec<Difference>,
}

impl From<CaseReport> for CaseResult {
    fn from(case: CaseReport) -> Self {
        CaseResult { name: case.name, passes: case.differences.is_empty(), differences: case.differences }
    }
}

impl TestReport {
    /// The report of these suites.
    pub fn new(suites: Vec<SuiteResult>, require_coverage: bool) -> Self {
        let passes = |suite: &SuiteResult| suite.passes && !(require_coverage && suite.has_coverage_gaps());
        TestReport { passes: suites.iter().all(passes), suites }
    }
}

impl SuiteResult {
    /// The result of the suite at this path.
    pub fn new(suite: String, report: SuiteReport) -> Self {
        let passes = report.passes();
        let cases = report.cases.into_iter().map(CaseResult::from).collect();
        SuiteResult { suite, passes, cases, coverage: report.coverage }
    }

    /// Whether a rule or mapping is known to be untested.
    fn has_coverage_gaps(&self) -> bool {
        self.coverage.as_ref().is_some_and(|coverage| !coverage.gaps.is_empty())
    }
}

impl fmt::Display for SuiteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            write!(f, "{case}")?;
        }
        write!(f, "{}: {}", self.suite, counted(self.cases.len(), "case"))?;
        match self.cases.iter().filter(|case| !case.passes).count() {
            0 => write!(f, ", all pass")?,
            failed => write!(f, ", {failed} failed")?,
        }
        match &self.coverage {
            None => writeln!(f, "; coverage is only measured if all cases pass"),
            Some(coverage) if coverage.gaps.is_empty() => {
                writeln!(f, "; {} covered", counted(coverage.covered, "rule and mapping"))
            }
            Some(coverage) => {
                writeln!(f, "; {} not covered by any case:", coverage.gaps.len())?;
                coverage.gaps.iter().try_for_each(|gap| writeln!(f, "  {}: {}", gap.path, gap.missing))
            }
        }
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passes { "PASS" } else { "FAIL" };
        writeln!(f, "{verdict}  {}", terminal(&self.name))?;
        for difference in &self.differences {
            let blank = " ".repeat(difference.field.chars().count());
            let (field, expected) = (terminal(&difference.field), terminal(&difference.expected));
            writeln!(f, "      {field}  expected  {expected}")?;
            writeln!(f, "      {blank}  got       {}", terminal(&difference.got))?;
        }
        Ok(())
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 {
        return format!("1 {what}");
    }
    let plural = |word: &str| if word == "and" { word.to_owned() } else { format!("{word}s") };
    let words: Vec<String> = what.split(' ').map(plural).collect();
    format!("{count} {}", words.join(" "))
}
