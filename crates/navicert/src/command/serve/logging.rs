//! Logging to standard error, as text or JSON. No token, key or claim is ever logged, at any level.

use std::io;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

use crate::args::serve::{LogFormat, LogLevel};

/// Installs the logger. Later calls have no effect.
pub(super) fn start(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false);
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
