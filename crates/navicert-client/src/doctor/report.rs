//! The steps of a walk, what was found at each, and what follows from all of them.

use std::fmt;

use crate::whoami::User;

/// A step of the way from a kubeconfig to an answer, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The kubeconfig files can be read.
    File,
    /// A context is selected and exists.
    Context,
    /// Its cluster exists and has an address.
    Cluster,
    /// Its user exists and has a credential, or a way to one.
    User,
    /// It is known whose word counts for who the server is.
    Authority,
    /// The server's name has an address.
    Dns,
    /// Somebody listens there.
    Tcp,
    /// It is the server.
    Tls,
    /// The credential plugin is there.
    Plugin,
    /// It may run.
    Policy,
    /// It runs and gives something.
    Run,
    /// The kubeconfig, the plugin and kubectl speak the same version.
    Versions,
    /// What there is has not expired.
    Expiry,
    /// This machine's clock agrees with the server's.
    Clock,
    /// The server knows who is calling.
    Request,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Step; 15] = [
        Step::File,
        Step::Context,
        Step::Cluster,
        Step::User,
        Step::Authority,
        Step::Dns,
        Step::Tcp,
        Step::Tls,
        Step::Plugin,
        Step::Policy,
        Step::Run,
        Step::Versions,
        Step::Expiry,
        Step::Clock,
        Step::Request,
    ];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Step::File => "file",
            Step::Context => "context",
            Step::Cluster => "cluster",
            Step::User => "user",
            Step::Authority => "authority",
            Step::Dns => "dns",
            Step::Tcp => "tcp",
            Step::Tls => "tls",
            Step::Plugin => "plugin",
            Step::Policy => "policy",
            Step::Run => "run",
            Step::Versions => "versions",
            Step::Expiry => "expiry",
            Step::Clock => "clock",
            Step::Request => "request",
        }
    }
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should.
    Pass,
    /// It stops nobody, and is probably not meant.
    Warn,
    /// Nobody gets further than this.
    Fail,
    /// It could not be looked at, or does not apply.
    Skip,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Pass => "PASS",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
            Verdict::Skip => "SKIP",
        })
    }
}

/// What was found at one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub step: Step,
    /// How it went.
    pub verdict: Verdict,
    /// What was seen, in one clause.
    pub text: String,
    /// What to do about it.
    pub to_do: Option<String>,
}

/// Everything that was found: one finding per step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order of [`Step`].
    pub findings: Vec<Finding>,
    /// Whom the server takes us for, if it said so.
    pub user: Option<User>,
}

/// What it comes to, for whoever needs a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Nothing fails.
    Healthy,
    /// A file is not what it should be.
    BadInput,
    /// The server cannot be reached.
    Unreachable,
    /// A policy keeps the plugin from running.
    Denied,
    /// The server, the plugin or the selected context says no.
    Rejected,
}

impl Report {
    /// The first step at which nobody gets further.
    pub fn failure(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.verdict == Verdict::Fail)
    }

    /// The one thing to do. When the server turns a credential down and something before it looked wrong, that is the
    /// likely reason.
    pub fn to_do(&self) -> Option<&str> {
        let warning = || {
            let worth = |finding: &&Finding| finding.verdict == Verdict::Warn && finding.to_do.is_some();
            self.findings.iter().find(worth)
        };
        let finding = match self.failure() {
            Some(failure) if failure.step == Step::Request => warning().or(Some(failure)),
            Some(failure) => Some(failure),
            None => warning(),
        };
        finding.and_then(|finding| finding.to_do.as_deref())
    }

    /// What it comes to.
    pub fn conclusion(&self) -> Conclusion {
        match self.failure().map(|finding| finding.step) {
            None => Conclusion::Healthy,
            Some(Step::File) => Conclusion::BadInput,
            Some(Step::Dns | Step::Tcp | Step::Tls) => Conclusion::Unreachable,
            Some(Step::Policy) => Conclusion::Denied,
            Some(_) => Conclusion::Rejected,
        }
    }
}

/// A report in the making. Whoever listens is told of every finding at once.
pub(super) struct Walk<'a> {
    report: Report,
    tell: &'a mut (dyn FnMut(&Finding) + Send),
}

impl<'a> Walk<'a> {
    pub(super) fn new(tell: &'a mut (dyn FnMut(&Finding) + Send)) -> Self {
        Walk { report: Report::default(), tell }
    }

    pub(super) fn pass(&mut self, step: Step, text: impl Into<String>) {
        self.add(step, Verdict::Pass, text.into(), None);
    }

    pub(super) fn skip(&mut self, step: Step, text: impl Into<String>) {
        self.add(step, Verdict::Skip, text.into(), None);
    }

    pub(super) fn warn(&mut self, step: Step, text: impl Into<String>, to_do: impl Into<String>) {
        self.add(step, Verdict::Warn, text.into(), Some(to_do.into()));
    }

    pub(super) fn fail(&mut self, step: Step, text: impl Into<String>, to_do: impl Into<String>) {
        self.add(step, Verdict::Fail, text.into(), Some(to_do.into()));
    }

    pub(super) fn has_failed(&self) -> bool {
        self.report.failure().is_some()
    }

    pub(super) fn is_user(&mut self, user: User) {
        self.report.user = Some(user);
    }

    /// What lies between here and that step is not looked at.
    pub(super) fn skip_until(&mut self, next: Step) {
        self.skip_while(|step| step < next);
    }

    /// What was not come to is skipped.
    pub(super) fn end(mut self) -> Report {
        self.skip_while(|_| true);
        self.report
    }

    fn skip_while(&mut self, is_left: impl Fn(Step) -> bool) {
        let told = self.report.findings.len();
        let failed = self.report.failure().map_or("an earlier step", |finding| finding.step.name());
        let text = format!("not looked at, because `{failed}` failed");
        for step in Step::ALL.into_iter().skip(told).filter(|step| is_left(*step)) {
            self.skip(step, text.clone());
        }
    }

    fn add(&mut self, step: Step, verdict: Verdict, text: String, to_do: Option<String>) {
        let finding = Finding { step, verdict, text, to_do };
        (self.tell)(&finding);
        self.report.findings.push(finding);
    }
}
