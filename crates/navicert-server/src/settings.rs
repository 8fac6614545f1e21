//! What the servers share of a `NavicertConfiguration`: its `servers` part. The command line's word counts more.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_types::Diagnostics;
use navicert_types::decode::{Decode, Decoder, Fields, Mode};
use navicert_types::tree::Node;

use crate::health::AwaitedIssuers;
use crate::limits::Limits;
use crate::proxy;
use crate::serving::Ending;
use crate::webhook;

/// `servers` of a `NavicertConfiguration`.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// Where the server listens.
    pub listen: Option<SocketAddr>,
    /// Where probes and metrics are answered.
    pub health_listen: Option<SocketAddr>,
    /// Which issuers have to be ready before `/readyz` says so.
    pub ready_issuers: AwaitedIssuers,
    /// The certificate's file.
    pub tls_cert_file: Option<PathBuf>,
    /// Its key's file.
    pub tls_private_key_file: Option<PathBuf>,
    /// Whose clients' certificates are believed.
    pub client_ca_file: Option<PathBuf>,
    /// The names in clients' certificates that may ask; empty: any.
    pub client_allowed_names: Vec<String>,
    /// The file with the callers' token.
    pub bearer_token_file: Option<PathBuf>,
    /// Where the audit log goes.
    pub audit_log_path: Option<PathBuf>,
    /// How much anybody may ask.
    pub limits: LimitSettings,
    /// How long it goes on as before once it is told to end.
    pub shutdown_delay: Option<Duration>,
    /// How long what has begun may take from then on.
    pub shutdown_grace: Option<Duration>,
    /// The webhook's own.
    pub webhook: webhook::Settings,
    /// The proxy's own.
    pub proxy: proxy::Settings,
}

/// Limits that are set; the others are as they are by default.
#[derive(Clone, Debug, Default)]
pub struct LimitSettings {
    connections: Option<u32>,
    requests: Option<u32>,
    header_bytes: Option<u32>,
    header_lines: Option<u32>,
    handshake: Option<Duration>,
    header_time: Option<Duration>,
    http2_streams: Option<u32>,
}

impl Servers {
    /// Reads the part of a file, strictly.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the text.
    pub fn parse(node: &Node) -> Result<Self, Diagnostics> {
        let mut decoder = Decoder::new(Mode::Strict);
        let servers = decoder.field("servers", node);
        decoder.finish(servers)
    }

    /// The same with the files it names, which are relative to the folder it is in. `-` is no file.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        let files = [
            &mut self.tls_cert_file,
            &mut self.tls_private_key_file,
            &mut self.client_ca_file,
            &mut self.bearer_token_file,
            &mut self.audit_log_path,
        ];
        for path in files.into_iter().flatten().filter(|path| **path != *Path::new("-")) {
            *path = folder.join(&*path);
        }
        self
    }

    /// How it ends.
    pub fn ending(&self) -> Ending {
        let default = Ending::default();
        Ending {
            delay: self.shutdown_delay.unwrap_or(default.delay),
            grace: self.shutdown_grace.unwrap_or(default.grace),
        }
    }
}

impl LimitSettings {
    /// The limits that count, for a server with these by default.
    pub fn limits(&self, default: Limits) -> Limits {
        let number = |set: Option<u32>, default: usize| set.map_or(default, |set| set as usize);
        Limits {
            connections: number(self.connections, default.connections),
            requests: number(self.requests, default.requests),
            head: number(self.header_bytes, default.head),
            header_lines: number(self.header_lines, default.header_lines),
            handshake: self.handshake.unwrap_or(default.handshake),
            head_time: self.header_time.unwrap_or(default.head_time),
            http2_streams: self.http2_streams.unwrap_or(default.http2_streams),
        }
    }
}

impl Decode for Servers {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Servers {
            listen: fields.optional::<Address>("listen").and_then(|address| address.0),
            health_listen: fields.optional::<Address>("healthListen").and_then(|address| address.0),
            ready_issuers: fields.default("readyIssuers"),
            tls_cert_file: file(fields, "tlsCertFile"),
            tls_private_key_file: file(fields, "tlsPrivateKeyFile"),
            client_ca_file: file(fields, "clientCAFile"),
            client_allowed_names: fields.default("clientAllowedNames"),
            bearer_token_file: file(fields, "bearerTokenFile"),
            audit_log_path: file(fields, "auditLogPath"),
            limits: fields.default("limits"),
            shutdown_delay: duration(fields, "shutdownDelay"),
            shutdown_grace: duration(fields, "shutdownGrace"),
            webhook: fields.default("webhook"),
            proxy: fields.default("proxy"),
        })
    }
}

impl Decode for LimitSettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| LimitSettings {
            connections: number(fields, "connections"),
            requests: number(fields, "requests"),
            header_bytes: number(fields, "headerBytes"),
            header_lines: number(fields, "headerLines"),
            handshake: positive_duration(fields, "handshake"),
            header_time: positive_duration(fields, "headerTime"),
            http2_streams: number(fields, "http2Streams"),
        })
    }
}

impl Decode for AwaitedIssuers {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words =
            [("none", AwaitedIssuers::None), ("any", AwaitedIssuers::Any), ("all", AwaitedIssuers::All)];
        decoder.one_of(node, &words)
    }
}

fn file(fields: &mut Fields<'_>, name: &'static str) -> Option<PathBuf> {
    fields.optional::<String>(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A number above nothing.
#[derive(Default)]
struct Positive(Option<u32>);

impl Decode for Positive {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let number = u32::decode(node, decoder)?;
        if number == 0 {
            decoder.invalid_value(node, "expected a number above 0");
        }
        Some(Positive(Some(number)))
    }
}

fn number(fields: &mut Fields<'_>, name: &'static str) -> Option<u32> {
    fields.optional::<Positive>(name).and_then(|number| number.0)
}

/// `1m30s`, possibly none at all.
#[derive(Default)]
struct Time(Duration);

impl Decode for Time {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let read = navicert_types::time::Duration::decode(node, decoder)?;
        let time = read.to_std();
        if time.is_none() {
            decoder.invalid_value(node, "expected a duration that is not negative");
        }
        time.map(Time)
    }
}

/// A duration, if the field is there.
pub fn duration(fields: &mut Fields<'_>, name: &'static str) -> Option<Duration> {
    fields.optional::<Time>(name).map(|time| time.0)
}

/// More than no time.
#[derive(Default)]
struct SomeTime(Duration);

impl Decode for SomeTime {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let time = Time::decode(node, decoder)?;
        if time.0.is_zero() {
            decoder.invalid_value(node, "expected a duration above 0");
            return None;
        }
        Some(SomeTime(time.0))
    }
}

/// A duration above nothing, if the field is there.
pub fn positive_duration(fields: &mut Fields<'_>, name: &'static str) -> Option<Duration> {
    fields.optional::<SomeTime>(name).map(|time| time.0)
}

/// `127.0.0.1:8443`, `[::]:8443`, or `:8443` for every address of this machine.
#[derive(Default)]
struct Address(Option<SocketAddr>);

impl Decode for Address {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        match address(&text) {
            Ok(address) => Some(Address(Some(address))),
            Err(message) => {
                decoder.invalid_value(node, message);
                None
            }
        }
    }
}

/// An address to listen on: `127.0.0.1:8443`, `[::]:8443`, or `:8443` for every address of this machine.
///
/// # Errors
/// What was expected instead.
pub fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let expected = "expected an address with a port, such as `127.0.0.1:8443` or `:8443`";
    match text.strip_prefix(':') {
        Some(port) => port.parse().map(|port| SocketAddr::from(([0u16; 8], port))).map_err(|_| expected),
        None => text.parse().map_err(|_| expected),
    }
}
