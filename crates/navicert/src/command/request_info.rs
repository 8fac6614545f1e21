//! `navicert request-info --jsonl`: interprets requests as kube-apiserver does, for tests that compare the two.

use navicert_server::request_info::{RequestInfo, RequestInfoError};
use serde_json::{Value, json};

use super::exec_plugin::lines::{process_lines, text};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Interprets every line of standard input.
pub(crate) fn run(output: &mut Output) -> Result<Exit, Failure> {
    process_lines(process, output)
}

fn process(request: &Value) -> Result<Value, String> {
    let (method, target) = (text(request, "method")?, text(request, "target")?);
    if !target.starts_with('/') {
        return Err("`target` must begin with `/`".to_owned());
    }
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    match RequestInfo::read(method, path, query) {
        Ok(info) => Ok(describe(&info)),
        Err(RequestInfoError::NotUtf8) => Err(RequestInfoError::NotUtf8.to_string()),
        Err(error) => Ok(json!({"ok": false, "error": error.to_string()})),
    }
}

fn describe(info: &RequestInfo<'_>) -> Value {
    let mut members = json!({
        "ok": true,
        "path": info.path(),
        "verb": info.verb(),
        "apiPrefix": info.api_prefix(),
        "isResourceRequest": false,
        "apiGroup": "",
        "apiVersion": "",
        "namespace": "",
        "resource": "",
        "subresource": "",
        "name": "",
        "parts": [],
        "fieldSelector": "",
        "labelSelector": "",
    });
    if let (Some(resource), Some(members)) = (info.resource(), members.as_object_mut()) {
        members.extend([
            ("isResourceRequest".to_owned(), json!(true)),
            ("apiGroup".to_owned(), json!(resource.group())),
            ("apiVersion".to_owned(), json!(resource.version())),
            ("namespace".to_owned(), json!(resource.namespace())),
            ("resource".to_owned(), json!(resource.resource())),
            ("subresource".to_owned(), json!(resource.subresource())),
            ("name".to_owned(), json!(resource.name())),
            ("parts".to_owned(), resource.parts().collect()),
            ("fieldSelector".to_owned(), json!(resource.field_selector())),
            ("labelSelector".to_owned(), json!(resource.label_selector())),
        ]);
    }
    members
}
