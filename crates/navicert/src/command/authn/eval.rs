//! `navicert authn eval`: one token, the keys of a file, and whom the token stands for.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use navicert_authn::Profile;
use navicert_types::{Clock as _, Secret, SystemClock};
use serde_json::{Value, json};

use super::profile;
use crate::args::authn::EvalArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Evaluates one token. 0: it stands for somebody; 1: it does not; 3: a file is not what it should be.
pub(super) fn run(args: &EvalArgs, output: &mut Output) -> Result<Exit, Failure> {
    let profile: Profile = profile(args.profile);
    let token = token(args.token_file.as_deref())?;
    let (config, jwks) = (args.config.as_deref(), args.jwks.as_deref());
    let mut question = question(config.unwrap_or("".as_ref()), jwks.unwrap_or("".as_ref()))?;
    if let Some(members) = question.as_object_mut() {
        members.insert("token".to_owned(), json!(token.expose().trim()));
        members.insert("now".to_owned(), json!(args.now.unwrap_or_else(|| SystemClock.now().as_second())));
    }
    let answer = navicert_authn::batch::eval(&question, &profile);
    if let Some(fault) = answer.get("fault").and_then(Value::as_str) {
        return Err(Failure::bad_input(fault));
    }
    let authenticated = answer.get("user").is_some();
    if output.is_json() {
        output.json(&answer)?;
    } else {
        output.text(&described(&answer))?;
    }
    Ok(if authenticated { Exit::Done } else { Exit::No })
}

/// The configuration and the keys of a question, from their files.
pub(super) fn question(config: &Path, jwks: &Path) -> Result<Value, Failure> {
    Ok(json!({"config": text(config)?, "jwks": key_sets(jwks)?}))
}

/// A file of keys: one document for every issuer, or one per issuer.
pub(super) fn key_sets(path: &Path) -> Result<Value, Failure> {
    let jwks = text(path)?;
    // A map of issuers is an object; a document of keys goes as it is, odd spellings included.
    let by_issuer = serde_json::from_str::<Value>(&jwks)
        .ok()
        .filter(|jwks| jwks.is_object() && jwks.get("keys").is_none());
    Ok(by_issuer.unwrap_or(Value::String(jwks)))
}

fn described(answer: &Value) -> String {
    let word = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(user) = answer.get("user") else {
        let why = if word("error").is_empty() { word("reason") } else { word("error") };
        return format!("{}: {why}\n", word("outcome"));
    };
    let mut text = format!("authenticated\n  username  {}\n", plain(user.get("username")));
    if user.get("uid").is_some_and(|uid| uid != "") {
        text += &format!("  uid       {}\n", plain(user.get("uid")));
    }
    for group in user.get("groups").and_then(Value::as_array).into_iter().flatten() {
        text += &format!("  group     {}\n", plain(Some(group)));
    }
    for (key, values) in user.get("extra").and_then(Value::as_object).into_iter().flatten() {
        text += &format!("  extra     {key}: {values}\n");
    }
    text
}

/// A text of the token for a terminal.
fn plain(value: Option<&Value>) -> String {
    navicert_types::redact::terminal(value.and_then(Value::as_str).unwrap_or_default()).to_string()
}

pub(super) fn token(path: Option<&Path>) -> Result<Secret<String>, Failure> {
    if let Some(path) = path {
        return text(path).map(Secret::new);
    }
    let mut token = String::new();
    io::stdin()
        .read_to_string(&mut token)
        .map_err(|error| Failure::bad_input(format!("cannot read the token from standard input: {error}")))?;
    Ok(Secret::new(token))
}

fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("cannot read `{name}`: {error}")))
}
