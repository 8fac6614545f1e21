//! `navicert exec-plugin decode --jsonl`: decodes plugin output as a client does. The result includes the token, which the
//! caller provided.

use navicert_client::exec::{ExecError, response};
use navicert_types::error_chain;
use navicert_types::exec_credential::ExecVersion;
use serde_json::{Value, json};

use super::lines::text;

/// Processes one line.
pub(super) fn process(request: &Value) -> Result<Value, String> {
    let (api_version, stdout) = (text(request, "apiVersion")?, text(request, "stdout")?);
    let exit = request.get("exit").map_or(Some(0), Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let exit = exit.ok_or("`exit` must be an exit code")?;
    let refused = |error: &dyn std::error::Error| Ok(json!({"ok": false, "error": error_chain(error)}));
    let Some(version) = ExecVersion::from_api_version(api_version) else {
        return refused(&ExecError::InvalidVersion(api_version.to_owned()));
    };
    if exit != 0 {
        return refused(&ExecError::Failed { command: "plugin".to_owned(), code: exit, message: None });
    }
    let output = match response::read(stdout.as_bytes(), version) {
        Ok(output) => output,
        Err(error) => return refused(&error),
    };
    let mut result = json!({"ok": true, "hasCert": output.identity.is_some()});
    if let Some(members) = result.as_object_mut() {
        if !output.token.is_empty() {
            members.insert("token".to_owned(), json!(output.token.expose()));
        }
        if let Some(expires) = output.expires {
            members.insert("expires".to_owned(), json!(expires.to_string()));
        }
    }
    Ok(result)
}
