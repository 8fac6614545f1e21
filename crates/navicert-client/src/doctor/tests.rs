//! Conclusions from step results; the command line's transcripts run the steps against real servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::Environment;
use navicert_testkit::{Answer, ApiServer, Ca, Kubeconfig, wait};
use navicert_types::{Clock, Timestamp};
use serde_json::json;

use super::report::ReportBuilder;
use super::{Conclusion, DoctorReport, DoctorStep, StepStatus, diagnose};
use crate::config::ConfigOptions;

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

/// Sixty seconds later once the plugin has run.
#[derive(Debug)]
struct SlowPluginClock {
    started: Timestamp,
    marker: PathBuf,
}

impl Clock for SlowPluginClock {
    fn now(&self) -> Timestamp {
        let plugin = if self.marker.exists() { 60 } else { 0 };
        self.started + Duration::from_secs(plugin)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn time_that_a_plugin_takes_is_not_clock_skew() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let (ca, marker) = (Ca::new("root"), file("marker"));
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let version = json!({"gitVersion": "v1.34.0"});
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    api.answer("/version", Answer::json(&version).header("date", date));
    let response =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
    let script = format!("touch {}; echo '{response}'", marker.display());
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "/bin/sh",
        "args": ["-c", script],
    });
    // The test kit's certificates are valid from 2000 on, so they are not verified.
    let config = Kubeconfig::new(api.url()).cluster_field("insecure-skip-tls-verify", true);
    config.user(json!({"exec": exec})).write(file("config"));
    let started = "1994-11-06T08:49:37Z".parse().unwrap();
    let clock = Arc::new(SlowPluginClock { started, marker: marker.clone() });
    let environment = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
    let options = ConfigOptions::new(environment, directory.path()).kubeconfig(file("config")).clock(clock);
    let report = wait::within("a diagnosis", Box::pin(diagnose(&options, &mut |_| {}))).await;
    assert!(marker.exists(), "{report:?}");
    let clock = report.results.iter().find(|result| result.step == DoctorStep::Clock).unwrap();
    assert_eq!((clock.status, report.conclusion()), (StepStatus::Pass, Conclusion::Healthy), "{report:?}");
}

#[test]
fn tokens_in_the_wrong_form_are_recognised() {
    use super::rejection::{TokenMistake, token_mistake};
    for (token, mistake) in [
        ("Bearer abc", Some(TokenMistake::Scheme)),
        ("bearer: abc", Some(TokenMistake::Scheme)),
        ("YWJjZGVmLjAxMjM0NTY3ODlhYmNkZWY=", Some(TokenMistake::Base64)),
        ("YWJjZGVmLjAxMjM0NTY3ODlhYmNkZWYK", Some(TokenMistake::Base64)),
        ("abcdef.0123456789abcdef", None),
        ("bearer-of-news", None),
        // Valid base64, but of bytes that are not text: an opaque token.
        ("0123456789abcdef0123456789abcdef", None),
        ("short", None),
        ("", None),
    ] {
        assert_eq!(token_mistake(token), mistake, "{token}");
    }
}
