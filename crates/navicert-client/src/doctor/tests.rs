//! Conclusions from step results; the command line's transcripts run the steps against real servers.

use super::report::ReportBuilder;
use super::{Conclusion, DoctorReport, DoctorStep, StepStatus};

fn report(statuses: &[(DoctorStep, StepStatus)]) -> DoctorReport {
    let mut reported = 0;
    let mut on_event = |_: super::DoctorEvent<'_>| reported += 1;
    let mut builder = ReportBuilder::new(&mut on_event);
    for step in DoctorStep::ALL {
        let verdict = statuses.iter().find(|(found, _)| *found == step).map(|(_, verdict)| *verdict);
        match verdict {
            Some(StepStatus::Warn) => builder.warn(step, "odd", format!("look at {}", step.name())),
            Some(StepStatus::Fail) => builder.fail(step, "wrong", format!("fix {}", step.name())),
            _ => builder.pass(step, "good"),
        }
    }
    let report = builder.finish();
    assert_eq!((reported, report.results.len()), (DoctorStep::ALL.len(), DoctorStep::ALL.len()));
    report
}

#[test]
fn first_failure_is_the_thing_to_do_and_an_earlier_warning_explains_a_rejection() {
    use DoctorStep::{Authority, Clock, Dns, File, Plugin, Policy, Proxy, Request, Server, User, Versions};
    use StepStatus::{Fail, Warn};
    for (statuses, to_do, conclusion) in [
        (&[][..], None, Conclusion::Healthy),
        (&[(User, Warn), (Clock, Warn)], Some("look at user"), Conclusion::Healthy),
        (&[(File, Fail), (Dns, Fail)], Some("fix file"), Conclusion::BadInput),
        (&[(User, Warn), (Dns, Fail), (Plugin, Fail)], Some("fix dns"), Conclusion::Unreachable),
        (&[(Policy, Fail)], Some("fix policy"), Conclusion::Denied),
        (&[(Clock, Warn), (Request, Fail)], Some("look at clock"), Conclusion::Rejected),
        (&[(Request, Fail)], Some("fix request"), Conclusion::Rejected),
        (
            &[(File, Warn), (Authority, Warn), (Versions, Warn), (Request, Fail)],
            Some("fix request"),
            Conclusion::Rejected,
        ),
        (&[(Proxy, Fail)], Some("fix proxy"), Conclusion::Unreachable),
        (&[(Server, Fail), (Plugin, Fail)], Some("fix server"), Conclusion::Rejected),
    ] {
        let report = report(statuses);
        assert_eq!((report.to_do(), report.conclusion()), (to_do, conclusion), "{statuses:?}");
    }
}

#[test]
fn remaining_steps_are_skipped_with_the_reason() {
    let mut on_event = |_: super::DoctorEvent<'_>| {};
    let mut builder = ReportBuilder::new(&mut on_event);
    builder.fail(DoctorStep::File, "gone", "find it");
    builder.skip_until(DoctorStep::Cluster);
    let report = builder.finish();
    let steps: Vec<DoctorStep> = report.results.iter().map(|result| result.step).collect();
    assert_eq!(steps, DoctorStep::ALL);
    let skipped = report.results.iter().skip(1);
    assert!(skipped.clone().all(|result| result.status == StepStatus::Skip));
    assert!(skipped.clone().all(|result| result.text == "skipped because `file` failed"));
}
