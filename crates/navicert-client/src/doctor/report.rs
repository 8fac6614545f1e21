//! The steps, their results, and the conclusion.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::whoami::UserInfo;

/// A step from the kubeconfig to a response, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DoctorStep {
    /// The kubeconfig files can be read.
    File,
    /// A context is selected and exists.
    Context,
    /// Its cluster exists and has a server URL.
    Cluster,
    /// Its user exists and has a credential or a plugin.
    User,
    /// The certificate authority that verifies the server is valid.
    Authority,
    /// The proxy on the way to the server accepts connections.
    Proxy,
    /// The server's host name resolves.
    Dns,
    /// The server accepts connections.
    Tcp,
    /// The server's certificate is valid.
    Tls,
    /// The server is a Kubernetes API server.
    Server,
    /// The credential plugin is installed.
    Plugin,
    /// The plugin policy permits it.
    Policy,
    /// A user who logs in has a session.
    Login,
    /// The plugin runs and returns a credential.
    Run,
    /// The kubeconfig, the plugin and kubectl support the same version.
    Versions,
    /// The credential has not expired.
    Expiry,
    /// The local clock agrees with the server's.
    Clock,
    /// The server authenticates the request.
    Request,
}

impl DoctorStep {
    /// All steps in order.
    pub const ALL: [DoctorStep; 18] = [
        DoctorStep::File,
        DoctorStep::Context,
        DoctorStep::Cluster,
        DoctorStep::User,
        DoctorStep::Authority,
        DoctorStep::Proxy,
        DoctorStep::Dns,
        DoctorStep::Tcp,
        DoctorStep::Tls,
        DoctorStep::Server,
        DoctorStep::Plugin,
        DoctorStep::Policy,
        DoctorStep::Login,
        DoctorStep::Run,
        DoctorStep::Versions,
        DoctorStep::Expiry,
        DoctorStep::Clock,
        DoctorStep::Request,
    ];

    /// The stable name of the step.
    pub fn name(self) -> &'static str {
        match self {
            DoctorStep::File => "file",
            DoctorStep::Context => "context",
            DoctorStep::Cluster => "cluster",
            DoctorStep::User => "user",
            DoctorStep::Authority => "authority",
            DoctorStep::Proxy => "proxy",
            DoctorStep::Dns => "dns",
            DoctorStep::Tcp => "tcp",
            DoctorStep::Tls => "tls",
            DoctorStep::Server => "server",
            DoctorStep::Plugin => "plugin",
            DoctorStep::Policy => "policy",
            DoctorStep::Login => "login",
            DoctorStep::Run => "run",
            DoctorStep::Versions => "versions",
            DoctorStep::Expiry => "expiry",
            DoctorStep::Clock => "clock",
            DoctorStep::Request => "request",
        }
    }
}

/// The status of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum StepStatus {
    /// The step succeeded.
    Pass,
    /// Not an error, but probably unintended.
    Warn,
    /// Requests fail at this step.
    Fail,
    /// Not checked, or not applicable.
    Skip,
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            StepStatus::Pass => "PASS",
            StepStatus::Warn => "WARN",
            StepStatus::Fail => "FAIL",
            StepStatus::Skip => "SKIP",
        })
    }
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StepResult {
    /// The step.
    pub step: DoctorStep,
    /// Its status.
    #[serde(rename = "verdict")]
    pub status: StepStatus,
    /// What was found, in one clause.
    pub text: String,
    /// How to fix it.
    pub to_do: Option<String>,
}

/// What happens during a diagnosis.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DoctorEvent<'a> {
    /// A step is complete.
    Result(&'a StepResult),
    /// The credential plugin is still running. Sent every second.
    PluginRunning {
        /// The command with its arguments, safe for a terminal.
        command: &'a str,
        /// How long it has been running.
        elapsed: Duration,
        /// Whether the plugin may prompt on the terminal.
        interactive: bool,
    },
}

/// The results of all steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoctorReport {
    /// One result per step, in the order of [`DoctorStep`].
    pub results: Vec<StepResult>,
    /// The authenticated user, if the server returned one.
    pub user: Option<UserInfo>,
    /// Whether a rejected request is explained by what was sent, so that an earlier warning is not the cause.
    rejection_is_explained: bool,
}

/// The overall result, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// No step failed.
    Healthy,
    /// A file is missing or invalid.
    BadInput,
    /// The server is unreachable.
    Unreachable,
    /// The plugin policy denies the plugin.
    Denied,
    /// The server, the plugin or the selected context rejects the request.
    Rejected,
}

impl DoctorReport {
    /// The first failed step.
    pub fn failure(&self) -> Option<&StepResult> {
        self.results.iter().find(|result| result.status == StepStatus::Fail)
    }

    /// The one thing to do. If the server rejects the request for an unknown reason, the first earlier warning that can
    /// explain it is the likely cause.
    pub fn to_do(&self) -> Option<&str> {
        let is_warning = |result: &&StepResult| result.status == StepStatus::Warn && result.to_do.is_some();
        let is_cause = |result: &&StepResult| {
            let steps = [DoctorStep::Cluster, DoctorStep::User, DoctorStep::Login, DoctorStep::Clock];
            is_warning(result) && steps.contains(&result.step)
        };
        let result = match self.failure() {
            Some(failure) if failure.step == DoctorStep::Request && !self.rejection_is_explained => {
                self.results.iter().find(is_cause).or(Some(failure))
            }
            Some(failure) => Some(failure),
            None => self.results.iter().find(is_warning),
        };
        result.and_then(|result| result.to_do.as_deref())
    }

    /// The overall result.
    pub fn conclusion(&self) -> Conclusion {
        match self.failure().map(|result| result.step) {
            None => Conclusion::Healthy,
            Some(
                DoctorStep::File
                | DoctorStep::Context
                | DoctorStep::Cluster
                | DoctorStep::User
                | DoctorStep::Authority,
            ) => Conclusion::BadInput,
            Some(DoctorStep::Proxy | DoctorStep::Dns | DoctorStep::Tcp | DoctorStep::Tls) => {
                Conclusion::Unreachable
            }
            Some(DoctorStep::Policy) => Conclusion::Denied,
            Some(_) => Conclusion::Rejected,
        }
    }
}

/// Builds a report and passes every event to the callback immediately.
pub(super) struct ReportBuilder<'a> {
    report: DoctorReport,
    on_event: &'a mut (dyn FnMut(DoctorEvent<'_>) + Send),
}

impl<'a> ReportBuilder<'a> {
    pub(super) fn new(on_event: &'a mut (dyn FnMut(DoctorEvent<'_>) + Send)) -> Self {
        ReportBuilder { report: DoctorReport::default(), on_event }
    }

    pub(super) fn plugin_running(&mut self, command: &str, elapsed: Duration, interactive: bool) {
        (self.on_event)(DoctorEvent::PluginRunning { command, elapsed, interactive });
    }

    pub(super) fn pass(&mut self, step: DoctorStep, text: impl Into<String>) {
        self.add(step, StepStatus::Pass, text.into(), None);
    }

    pub(super) fn skip(&mut self, step: DoctorStep, text: impl Into<String>) {
        self.add(step, StepStatus::Skip, text.into(), None);
    }

    pub(super) fn warn(&mut self, step: DoctorStep, text: impl Into<String>, to_do: impl Into<String>) {
        self.add(step, StepStatus::Warn, text.into(), Some(to_do.into()));
    }

    pub(super) fn fail(&mut self, step: DoctorStep, text: impl Into<String>, to_do: impl Into<String>) {
        self.add(step, StepStatus::Fail, text.into(), Some(to_do.into()));
    }

    /// The request fails for a reason that no earlier warning explains.
    pub(super) fn fail_request(&mut self, text: impl Into<String>, to_do: impl Into<String>) {
        self.report.rejection_is_explained = true;
        self.fail(DoctorStep::Request, text, to_do);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.report.failure().is_some()
    }

    pub(super) fn set_user(&mut self, user: UserInfo) {
        self.report.user = Some(user);
    }

    /// The first step without a result.
    pub(super) fn next_step(&self) -> Option<DoctorStep> {
        DoctorStep::ALL.get(self.report.results.len()).copied()
    }

    /// Skips the remaining steps before `next` with this text.
    pub(super) fn skip_before(&mut self, next: DoctorStep, text: &str) {
        let reported = self.report.results.len();
        for step in DoctorStep::ALL.into_iter().skip(reported).filter(|step| *step < next) {
            self.skip(step, text);
        }
    }

    /// Skips the steps before `next` because of the failed one.
    pub(super) fn skip_until(&mut self, next: DoctorStep) {
        self.skip_while(|step| step < next);
    }

    /// Why a later step is skipped.
    pub(super) fn skip_reason(&self) -> String {
        let failed = self.report.failure().map_or("an earlier step", |result| result.step.name());
        format!("skipped because `{failed}` failed")
    }

    /// Skips the remaining steps and returns the report.
    pub(super) fn finish(mut self) -> DoctorReport {
        self.skip_while(|_| true);
        self.report
    }

    fn skip_while(&mut self, is_left: impl Fn(DoctorStep) -> bool) {
        let reported = self.report.results.len();
        let text = self.skip_reason();
        for step in DoctorStep::ALL.into_iter().skip(reported).filter(|step| is_left(*step)) {
            self.skip(step, text.clone());
        }
    }

    fn add(&mut self, step: DoctorStep, verdict: StepStatus, text: String, to_do: Option<String>) {
        let result = StepResult { step, status: verdict, text, to_do };
        (self.on_event)(DoctorEvent::Result(&result));
        self.report.results.push(result);
    }
}
