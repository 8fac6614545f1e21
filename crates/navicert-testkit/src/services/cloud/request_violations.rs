//! Violations that a fake service found in its requests: missing as well as superfluous fields.

use std::sync::{Arc, Mutex, PoisonError};

use crate::net::http_server::Request;

/// All violations so far. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct RequestViolations(Arc<Mutex<Vec<String>>>);

impl RequestViolations {
    /// Adds a violation.
    pub fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    /// Fails the test if there are violations.
    ///
    /// # Panics
    /// With all of them.
    pub fn assert_none(&self) {
        let violations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(violations.is_empty(), "request violations: {violations:#?}");
    }

    /// Checks a request's method and every header: those given, `host`, `connection` and `content-length`, and no
    /// other. A value of `*` stands for anything.
    pub(super) fn expect(&self, request: &Request, method: &str, headers: &[(&str, &str)]) {
        let what = format!("{} {}", request.method, request.path());
        if request.method != method {
            self.add(format!("{what}: expected {method}"));
        }
        let framing = ["host", "connection", "content-length"];
        for name in request.headers.keys() {
            let name = name.as_str();
            if !framing.contains(&name) && !headers.iter().any(|(known, _)| *known == name) {
                self.add(format!("{what}: unexpected header `{name}`"));
            }
        }
        for (name, value) in headers {
            match request.header_values(name).as_slice() {
                [sent] if *value == "*" || sent == value => {}
                sent => self
                    .add(format!("{what}: header `{name}` sent {} times or with a wrong value", sent.len())),
            }
        }
    }

    /// Checks a form, in order: every field, and no other.
    pub(super) fn expect_form(&self, what: &str, form: &str, fields: &[(&str, &str)]) {
        let sent = read_form(form);
        let sent: Vec<(&str, &str)> =
            sent.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut wanted = fields.to_vec();
        let mut got = sent;
        wanted.sort_unstable();
        got.sort_unstable();
        if wanted != got {
            let names: Vec<&str> = got.iter().map(|(name, _)| *name).collect();
            self.add(format!("{what}: unexpected form fields {names:?}, or a wrong value"));
        }
    }
}

/// A form's fields.
pub(super) fn read_form(form: &str) -> Vec<(String, String)> {
    let plain = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            let byte = (*first == b'%')
                .then(|| behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()))
                .flatten()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
            rest = if byte.is_some() { &behind[2..] } else { behind };
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pair = |field: &str| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        (plain(name), plain(value))
    };
    form.split('&').filter(|field| !field.is_empty()).map(pair).collect()
}
