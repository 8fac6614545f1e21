//! `navicert kubeconfig check`: checks whether a context is usable and reports every problem.

use navicert_client::kubeconfig::{Effective, MergedKubeconfig, OsFileSystem, Overrides, SourceLocation};
use navicert_types::kubeconfig;
use serde_json::{Value, json};

use super::report::Finding;
use crate::args::CheckArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Checks the selected context, or all of them.
pub(super) fn run(args: &CheckArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let merged = super::merged(&args.connection, environment, output)?;
    let overrides = args.connection.overrides(&environment.current_dir);
    let contexts: Vec<String> = if args.all_contexts {
        merged.config.contexts.iter().map(|entry| entry.name.clone()).collect()
    } else {
        vec![overrides.context.clone()]
    };
    let unknown = unknown_fields(&merged);
    let verdicts: Vec<ContextReport<'_>> = contexts
        .into_iter()
        .map(|context| ContextReport::check(&merged, &Overrides { context, ..overrides.clone() }))
        .collect();
    if output.is_json() {
        output.json(&json!({
            "usable": verdicts.iter().all(ContextReport::usable),
            "findings": unknown.iter().map(Finding::json).collect::<Vec<_>>(),
            "contexts": verdicts.iter().map(ContextReport::json).collect::<Vec<_>>(),
        }))?;
    } else {
        for finding in &unknown {
            finding.print(output);
        }
        for verdict in &verdicts {
            verdict.print(output)?;
        }
    }
    Ok(if verdicts.iter().all(ContextReport::usable) { Exit::Done } else { Exit::No })
}

/// Unknown fields in any file: kubectl ignores them, but they are usually typos.
fn unknown_fields(merged: &MergedKubeconfig) -> Vec<Finding<'_>> {
    let found = merged.origins().iter().flat_map(|origin| {
        let unknown = kubeconfig::unknown_fields(origin.text.expose()).into_iter();
        unknown.map(move |diagnostic| Finding {
            fatal: false,
            message: format!("{}: unknown field, ignored", diagnostic.path),
            location: Some(SourceLocation { origin, span: diagnostic.span }),
            hint: diagnostic.hint,
        })
    });
    found.collect()
}

struct ContextReport<'a> {
    context: Option<String>,
    effective: Option<Effective>,
    findings: Vec<Finding<'a>>,
}

impl<'a> ContextReport<'a> {
    fn check(merged: &'a MergedKubeconfig, overrides: &Overrides) -> Self {
        let asked = Some(&overrides.context).filter(|name| !name.is_empty());
        let current = Some(&merged.config.current_context).filter(|name| !name.is_empty());
        let context = asked.or(current).cloned();
        match merged.select(overrides, &OsFileSystem) {
            Ok(effective) => {
                let findings = client_findings(merged, &effective);
                ContextReport { context, effective: Some(effective), findings }
            }
            Err(problems) => {
                let findings = problems.iter().map(|problem| Finding {
                    fatal: true,
                    message: problem.to_string(),
                    hint: problem.way_out(),
                    location: merged.location_of_problem(problem),
                });
                ContextReport { context, effective: None, findings: findings.collect() }
            }
        }
    }

    fn usable(&self) -> bool {
        !self.findings.iter().any(|finding| finding.fatal)
    }

    fn name(&self) -> String {
        self.context.as_ref().map_or_else(|| "no context".to_owned(), |name| format!("context `{name}`"))
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        for finding in &self.findings {
            finding.print(output);
        }
        let Some(effective) = self.effective.as_ref().filter(|_| self.usable()) else {
            return output.text(&format!("{}: not usable\n", self.name()));
        };
        let kinds = effective.credential_kinds();
        let credential = if kinds.is_empty() { "anonymous".to_owned() } else { kinds.join(", ") };
        output.text(&format!(
            "{}: usable\n  server      {}\n  credential  {credential}\n",
            self.name(),
            effective.server(),
        ))
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "context": self.context,
            "usable": self.usable(),
            "findings": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
        });
        if let (Some(effective), Some(object)) = (&self.effective, value.as_object_mut()) {
            object.insert("server".to_owned(), json!(effective.server()));
            object.insert("credentials".to_owned(), json!(effective.credential_kinds()));
        }
        value
    }
}

/// Problems that kubectl accepts but that make a client fail, and likely mistakes.
fn client_findings<'a>(merged: &'a MergedKubeconfig, effective: &Effective) -> Vec<Finding<'a>> {
    let obstacles = effective.obstacles(&OsFileSystem).into_iter().map(|obstacle| Finding {
        fatal: true,
        message: obstacle.to_string(),
        hint: obstacle.way_out().map(ToOwned::to_owned),
        location: merged.location_of_obstacle(&obstacle, effective),
    });
    let advice = effective.advice().into_iter().map(|advice| Finding {
        fatal: false,
        message: advice.to_string(),
        hint: advice.way_out().map(ToOwned::to_owned),
        location: merged.location_of_advice(&advice, effective),
    });
    obstacles.chain(advice).collect()
}
