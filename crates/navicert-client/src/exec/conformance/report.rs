//! The results of all cases, and what they say about the plugin.

use navicert_types::exec_credential::ExecVersion;

use super::{ConformanceCase, PluginRule, RuleViolation};

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// The case.
    pub case: ConformanceCase,
    /// The broken rules; `None` if the plugin was not run.
    pub findings: Option<Vec<RuleViolation>>,
}

impl CaseResult {
    /// Whether a rule is broken that is not a recommendation.
    pub fn is_failed(&self) -> bool {
        self.required().next().is_some()
    }

    /// Whether the program could not be started, as it cannot be in any other case then.
    pub fn is_not_startable(&self) -> bool {
        self.required().any(|rule| rule == PluginRule::Starts)
    }

    /// The broken rules that are not recommendations.
    fn required(&self) -> impl Iterator<Item = PluginRule> {
        self.findings.iter().flatten().map(|finding| finding.rule).filter(|rule| !rule.is_advice())
    }

    /// Whether the plugin responds in another version than requested, or refuses the version.
    fn is_other_version(&self) -> bool {
        let may_be = |rule| matches!(rule, PluginRule::AskedVersion | PluginRule::ExitsZero);
        self.is_failed() && self.required().all(may_be)
    }
}

/// The results of all cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConformanceReport {
    /// In the order of the runs.
    pub results: Vec<CaseResult>,
}

impl ConformanceReport {
    /// The version that the plugin supports, if it conforms in one version and supports no other. A kubeconfig names one
    /// version, so such a plugin is as good as one that supports all.
    pub fn only_version(&self) -> Option<ExecVersion> {
        let of = |version| self.results.iter().filter(move |result| result.case.version == version);
        let is_good = |version: &ExecVersion| {
            let mut results = of(*version).peekable();
            results.peek().is_some() && results.all(|result| !result.is_failed() && result.findings.is_some())
        };
        let mut versions = ExecVersion::ALL.iter().copied();
        let good = versions.by_ref().find(is_good)?;
        let mut others = self.results.iter().filter(|result| result.case.version != good).peekable();
        (others.peek().is_some() && others.all(CaseResult::is_other_version)).then_some(good)
    }

    /// Whether this result counts against the plugin: not if it is of a version that the plugin does not support.
    pub fn is_failure(&self, result: &CaseResult) -> bool {
        result.is_failed() && self.only_version().is_none_or(|version| version == result.case.version)
    }

    /// The broken rules that are not recommendations, each once.
    pub fn broken(&self) -> Vec<PluginRule> {
        let failures = self.results.iter().filter(|result| self.is_failure(result));
        let mut rules: Vec<PluginRule> = failures.flat_map(CaseResult::required).collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of one result per case, by the rule it breaks.
    fn report(broken: impl Fn(ConformanceCase) -> Option<PluginRule>) -> ConformanceReport {
        let results = ConformanceCase::all(None).into_iter().map(|case| {
            let finding = |rule| RuleViolation { rule, message: String::new() };
            CaseResult { case, findings: Some(broken(case).map(finding).into_iter().collect()) }
        });
        ConformanceReport { results: results.collect() }
    }

    // C607
    #[test]
    fn plugin_of_one_version_conforms() {
        for spoken in [ExecVersion::V1, ExecVersion::V1Beta1] {
            for rule in [PluginRule::AskedVersion, PluginRule::ExitsZero] {
                let report = report(|case| (case.version != spoken).then_some(rule));
                assert_eq!((report.only_version(), report.broken()), (Some(spoken), Vec::new()));
                assert!(!report.results.iter().any(|result| report.is_failure(result)));
            }
        }
    }

    #[test]
    fn plugin_that_fails_otherwise_or_in_its_own_version_does_not_conform() {
        let both = report(|_| None);
        assert_eq!((both.only_version(), both.broken()), (None, Vec::new()));
        let neither = report(|_| Some(PluginRule::AskedVersion));
        assert_eq!((neither.only_version(), neither.broken()), (None, vec![PluginRule::AskedVersion]));
        let token = report(|case| (case.version == ExecVersion::V1Beta1).then_some(PluginRule::TokenFits));
        assert_eq!((token.only_version(), token.broken()), (None, vec![PluginRule::TokenFits]));
        let sometimes = report(|case| {
            (case.version == ExecVersion::V1Beta1 && case.terminal).then_some(PluginRule::AskedVersion)
        });
        assert_eq!((sometimes.only_version(), sometimes.broken()), (None, vec![PluginRule::AskedVersion]));
        let own = report(|case| match case.version {
            ExecVersion::V1 if case.terminal => Some(PluginRule::OneDocument),
            ExecVersion::V1 => None,
            _ => Some(PluginRule::AskedVersion),
        });
        assert_eq!(own.only_version(), None);
        assert_eq!(own.broken(), [PluginRule::OneDocument, PluginRule::AskedVersion]);
    }

    #[test]
    fn one_version_alone_says_nothing_about_the_other() {
        let results = ConformanceCase::all(Some(ExecVersion::V1))
            .into_iter()
            .map(|case| CaseResult { case, findings: Some(Vec::new()) });
        assert_eq!(ConformanceReport { results: results.collect() }.only_version(), None);
    }
}
