//! What follows from findings; the walk itself is in the command line's transcripts, against real servers.

use super::report::Walk;
use super::{Conclusion, Report, Step, Verdict};

fn report(findings: &[(Step, Verdict)]) -> Report {
    let mut told = 0;
    let mut tell = |_: &super::Finding| told += 1;
    let mut walk = Walk::new(&mut tell);
    for step in Step::ALL {
        let verdict = findings.iter().find(|(found, _)| *found == step).map(|(_, verdict)| *verdict);
        match verdict {
            Some(Verdict::Warn) => walk.warn(step, "odd", format!("look at {}", step.name())),
            Some(Verdict::Fail) => walk.fail(step, "wrong", format!("mend {}", step.name())),
            _ => walk.pass(step, "good"),
        }
    }
    let report = walk.end();
    assert_eq!((told, report.findings.len()), (Step::ALL.len(), Step::ALL.len()));
    report
}

#[test]
fn the_first_failure_is_what_has_to_be_done_and_a_refusal_is_explained_by_an_earlier_warning() {
    use Step::{Clock, Dns, File, Plugin, Policy, Request, User};
    use Verdict::{Fail, Warn};
    for (findings, to_do, conclusion) in [
        (&[][..], None, Conclusion::Healthy),
        (&[(User, Warn), (Clock, Warn)], Some("look at user"), Conclusion::Healthy),
        (&[(File, Fail), (Dns, Fail)], Some("mend file"), Conclusion::BadInput),
        (&[(User, Warn), (Dns, Fail), (Plugin, Fail)], Some("mend dns"), Conclusion::Unreachable),
        (&[(Policy, Fail)], Some("mend policy"), Conclusion::Denied),
        (&[(Clock, Warn), (Request, Fail)], Some("look at clock"), Conclusion::Rejected),
        (&[(Request, Fail)], Some("mend request"), Conclusion::Rejected),
    ] {
        let report = report(findings);
        assert_eq!((report.to_do(), report.conclusion()), (to_do, conclusion), "{findings:?}");
    }
}

#[test]
fn what_was_not_come_to_is_skipped_and_the_reason_named() {
    let mut tell = |_: &super::Finding| {};
    let mut walk = Walk::new(&mut tell);
    walk.fail(Step::File, "gone", "find it");
    walk.skip_until(Step::Cluster);
    let report = walk.end();
    let steps: Vec<Step> = report.findings.iter().map(|finding| finding.step).collect();
    assert_eq!(steps, Step::ALL);
    let skipped = report.findings.iter().skip(1);
    assert!(skipped.clone().all(|finding| finding.verdict == Verdict::Skip));
    assert!(skipped.clone().all(|finding| finding.text == "not looked at, because `file` failed"));
}
