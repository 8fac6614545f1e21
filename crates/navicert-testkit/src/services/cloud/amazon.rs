//! Amazon's services for registries: ECR, ECR Public, STS, EC2's metadata server and the agent beside a container.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::request_violations::{RequestViolations, read_form};
use crate::net::answer::Answer;
use crate::net::http_server::{HttpServer, Request};
use crate::pki::ca::Ca;

/// Amazon on one loopback port.
///
/// ECR and ECR Public are at `/`, told apart by their target; so is STS, told apart by its form. The metadata server
/// and the agent have paths of their own.
#[derive(Debug)]
pub struct Amazon {
    server: HttpServer,
    violations: RequestViolations,
    state: Arc<Mutex<State>>,
}

/// What Amazon knows.
#[derive(Clone, Debug)]
struct State {
    /// Key id, key, and the session token that has to come with it.
    keys: Vec<(String, String, Option<String>)>,
    password: String,
    expires_at: Option<f64>,
    /// Which token is exchanged for which role, and into which of the keys.
    roles: Vec<(String, String, usize)>,
    /// What the agent wants to be told.
    agent_token: Option<String>,
}

/// The instance's role.
const ROLE: &str = "node-role";
/// What the metadata server hands out first.
const METADATA_TOKEN: &str = "metadata-token-of-the-test";

impl Amazon {
    /// Starts it without TLS. It knows one key, `AKIDEXAMPLE`, whose secret is [`Amazon::SECRET`].
    pub fn start() -> Self {
        Amazon::serve(None)
    }

    /// The same over TLS, with a certificate for loopback from this CA.
    pub fn start_tls(ca: &Ca) -> Self {
        Amazon::serve(Some(ca))
    }

    fn serve(ca: Option<&Ca>) -> Self {
        let violations = RequestViolations::default();
        let state = Arc::new(Mutex::new(State {
            keys: vec![("AKIDEXAMPLE".to_owned(), Amazon::SECRET.to_owned(), None)],
            password: "password-of-the-registry".to_owned(),
            expires_at: None,
            roles: Vec::new(),
            agent_token: None,
        }));
        let (known, recorded) = (Arc::clone(&state), violations.clone());
        let answer = move |request: &Request| {
            let state = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            reply(&state, &recorded, request)
        };
        let builder = HttpServer::builder().http1_only().otherwise(answer);
        let server = match ca {
            Some(ca) => builder.start(ca),
            None => builder.start_plain(),
        };
        Amazon { server, violations, state }
    }

    /// The secret of the first key.
    pub const SECRET: &'static str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    /// The HTTP server: URL, recorded requests and fault injection.
    pub fn server(&self) -> &HttpServer {
        &self.server
    }

    /// Violations found in the requests.
    pub fn violations(&self) -> &RequestViolations {
        &self.violations
    }

    /// The registry's password from now on, and until when, in seconds since the epoch.
    pub fn hand_out(&self, password: &str, expires_at: Option<f64>) {
        self.change(|state| {
            password.clone_into(&mut state.password);
            state.expires_at = expires_at;
        });
    }

    /// Adds a role that this web identity token may assume; its credentials include this session token.
    pub fn trust(&self, role: &str, token: &str, session_token: &str) {
        self.change(|state| {
            let id = format!("ASIAROLE{}", state.keys.len());
            state.keys.push((id, format!("secret-of-{role}"), Some(session_token.to_owned())));
            state.roles.push((role.to_owned(), token.to_owned(), state.keys.len() - 1));
        });
    }

    /// The agent beside the container wants to be told this from now on.
    pub fn agent_wants(&self, token: &str) {
        self.change(|state| state.agent_token = Some(token.to_owned()));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn reply(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    match request.path() {
        "/" if request.header("x-amz-target").is_some() => registry(state, violations, request),
        "/" => sts(state, violations, request),
        "/agent" => agent(state, violations, request),
        path if path.starts_with("/latest/") => metadata(state, violations, request),
        path => {
            violations.add(format!("unexpected path {path}"));
            Answer::status(404)
        }
    }
}

fn registry(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    let target = request.header("x-amz-target").unwrap_or_default();
    let (service, is_public) = match target {
        "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken" => ("ecr", false),
        "SpencerFrontendService.GetAuthorizationToken" => ("ecr-public", true),
        _ => {
            violations.add(format!("there is no operation `{target}`"));
            return fault(400, "UnknownOperationException", "");
        }
    };
    let mut headers = vec![
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", target),
        ("x-amz-date", "*"),
        ("authorization", "*"),
    ];
    if request.header("x-amz-security-token").is_some() {
        headers.push(("x-amz-security-token", "*"));
    }
    // Amazon's own clients send more, and sign it.
    if request.header("amz-sdk-request").is_none() {
        violations.expect(request, "POST", &headers);
    }
    if request.body != b"{}" {
        violations.add("the body is not `{}`");
    }
    if let Err(message) = signature(state, request, service) {
        return fault(403, "InvalidSignatureException", &message);
    }
    let token = STANDARD.encode(format!("AWS:{}", state.password));
    let mut data = json!({"authorizationToken": token});
    if let Some(expires_at) = state.expires_at {
        data["expiresAt"] = json!(expires_at);
    }
    if is_public {
        return Answer::json(&json!({"authorizationData": data}));
    }
    data["proxyEndpoint"] = json!("https://123456789012.dkr.ecr.us-west-2.amazonaws.com");
    Answer::json(&json!({"authorizationData": [data]}))
}

fn fault(status: u16, code: &str, message: &str) -> Answer {
    Answer::json(&json!({"__type": code, "message": message})).with_status(status)
}

fn sts(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    let form = read_form(request.text());
    let field =
        |name: &str| form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    let action = field("Action").to_owned();
    let refused = |status: u16, code: &str, message: &str| {
        let body = format!(
            "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>\
             <Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        );
        Answer::bytes("text/xml", body).with_status(status)
    };
    let session = field("RoleSessionName");
    let given = match action.as_str() {
        "AssumeRoleWithWebIdentity" => {
            let headers =
                [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/xml")];
            violations.expect(request, "POST", &headers);
            let (role, token) = (field("RoleArn"), field("WebIdentityToken"));
            violations.expect_form(
                "AssumeRoleWithWebIdentity",
                request.text(),
                &[
                    ("Action", "AssumeRoleWithWebIdentity"),
                    ("Version", "2011-06-15"),
                    ("RoleArn", role),
                    ("RoleSessionName", session),
                    ("WebIdentityToken", token),
                ],
            );
            state.roles.iter().find(|(known, proof, _)| known == role && proof == token)
        }
        "AssumeRole" => {
            if let Err(message) = signature(state, request, "sts") {
                return refused(403, "SignatureDoesNotMatch", &message);
            }
            state
                .roles
                .iter()
                .find(|(known, proof, _)| known == field("RoleArn") && proof == field("ExternalId"))
        }
        _ => return refused(400, "InvalidAction", ""),
    };
    let Some((_, _, key)) = given else {
        // The real one also repeats what it was shown.
        let shown = format!("Not authorized to perform sts:{action} with {}", field("WebIdentityToken"));
        return refused(403, "AccessDenied", &shown);
    };
    let (id, secret, token) = &state.keys[*key];
    Answer::bytes(
        "text/xml",
        format!(
            "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><AssumedRoleUser>\
             <Arn>x</Arn></AssumedRoleUser><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{secret}\
             </SecretAccessKey><SessionToken>{}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>\
             </Credentials></{action}Result></{action}Response>",
            token.as_deref().unwrap_or_default()
        ),
    )
}

fn agent(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    let mut headers = vec![("accept", "application/json")];
    if let Some(token) = &state.agent_token {
        headers.push(("authorization", token.as_str()));
    }
    violations.expect(request, "GET", &headers);
    if request.header("authorization") != state.agent_token.as_deref() {
        return Answer::text("unauthenticated").with_status(401);
    }
    credentials(state)
}

fn metadata(state: &State, violations: &RequestViolations, request: &Request) -> Answer {
    let roles = "/latest/meta-data/iam/security-credentials/";
    match request.path() {
        "/latest/api/token" => {
            violations.expect(request, "PUT", &[("x-aws-ec2-metadata-token-ttl-seconds", "21600")]);
            Answer::text(METADATA_TOKEN)
        }
        path if request.header("x-aws-ec2-metadata-token") != Some(METADATA_TOKEN) => {
            violations.add(format!("{path}: without the metadata server's token"));
            Answer::status(401)
        }
        path if path == roles => {
            violations.expect(request, "GET", &[("x-aws-ec2-metadata-token", METADATA_TOKEN)]);
            Answer::text(ROLE)
        }
        path if path.strip_prefix(roles) == Some(ROLE) => credentials(state),
        _ => Answer::status(404),
    }
}

fn credentials(state: &State) -> Answer {
    let (id, secret, token) = &state.keys[0];
    Answer::json(&json!({
        "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": id, "SecretAccessKey": secret,
        "Token": token.as_deref().unwrap_or_default(), "Expiration": "2099-01-01T00:00:00Z",
    }))
}

/// Computes the signature again over whatever the request says is signed.
fn signature(state: &State, request: &Request, service: &str) -> Result<(), String> {
    let header = request.header("authorization").ok_or("no Authorization")?;
    let rest = header.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("not AWS4-HMAC-SHA256")?;
    let part = |name: &str| {
        let found = rest.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.ok_or(format!("no {name}"))
    };
    let (credential, names, sent) = (part("Credential")?, part("SignedHeaders")?, part("Signature")?);
    let (id, scope) = credential.split_once('/').ok_or("no scope")?;
    let known = state.keys.iter().find(|(known, _, _)| known == id);
    let (_, secret, token) = known.ok_or("The security token included in the request is invalid.")?;
    if request.header("x-amz-security-token") != token.as_deref() {
        return Err("the session token is missing or wrong".to_owned());
    }
    let mut wanted = vec!["content-type", "host", "x-amz-date"];
    wanted.extend(
        ["x-amz-security-token", "x-amz-target"].into_iter().filter(|name| request.header(name).is_some()),
    );
    if let Some(missing) = wanted.iter().find(|name| !names.split(';').any(|signed| signed == **name)) {
        return Err(format!("{missing} is not signed"));
    }
    let parts: Vec<&str> = scope.split('/').collect();
    let [date, region, signed_service, "aws4_request"] = parts.as_slice() else {
        return Err("bad scope".into());
    };
    if *signed_service != service {
        return Err(format!("Credential should be scoped to correct service: '{service}'"));
    }
    let lines: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default()))
        .collect();
    let canonical = format!(
        "{}\n{}\n\n{lines}\n{names}\n{}",
        request.method,
        request.path(),
        hex(&sha256(&request.body))
    );
    let time = request.header("x-amz-date").unwrap_or_default();
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&sha256(canonical.as_bytes())));
    let mut key = hmac_sha256(format!("AWS4{secret}").as_bytes(), date);
    for step in [region, signed_service, "aws4_request"] {
        key = hmac_sha256(&key, step);
    }
    let expected = hex(&hmac_sha256(&key, &to_sign));
    // The real one repeats the whole canonical request, session token and all.
    if sent == expected {
        Ok(())
    } else {
        Err(format!("The Canonical String for this request should have been {canonical:?}"))
    }
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

fn hmac_sha256(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
