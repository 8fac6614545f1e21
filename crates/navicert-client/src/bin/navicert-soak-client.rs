//! Test program that sends requests with a kubeconfig for a while and prints the result. The soak test runs it as a
//! separate process, so that its descriptors and memory are those of a client only.
//!
//! Arguments: the kubeconfig, the duration and the interval between two requests, both in milliseconds. Half of the
//! requests use HTTP/2, half HTTP/1.1. Prints one line of JSON.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use http_body_util::BodyExt;
use navicert_client::transport::{Body, Transport};
use navicert_client::{Client, Config};
use navicert_types::{Clock, SystemClock, error_chain};
use tokio::task::JoinSet;

type Fault = Box<dyn Error + Send + Sync>;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "its result is read by a test")]
fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Fault::from).and_then(|runtime| runtime.block_on(soak())) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", error_chain(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn soak() -> Result<String, Fault> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().map(PathBuf::from).ok_or("missing argument: kubeconfig")?;
    let mut milliseconds = || -> Result<Duration, Fault> {
        let text = arguments.next().ok_or("missing argument: duration or interval in milliseconds")?;
        Ok(Duration::from_millis(text.to_string_lossy().parse()?))
    };
    let (length, pause) = (milliseconds()?, milliseconds()?);
    let transports = [transport(&path, false)?, transport(&path, true)?];
    let (begun, mut ticks) = (SystemClock.monotonic(), tokio::time::interval(pause));
    let (mut in_flight, mut tally, mut early) = (JoinSet::new(), Tally::default(), None);
    while SystemClock.monotonic() < begun + length {
        ticks.tick().await;
        for transport in &transports {
            in_flight.spawn(status(transport.clone()));
        }
        while let Some(ended) = in_flight.try_join_next() {
            tally.count(ended?);
        }
        // Measured after a quarter of the time, when everything is warmed up; compared with the values at the end.
        if early.is_none() && SystemClock.monotonic() >= begun + length / 4 {
            early = Some(resource_usage()?);
        }
    }
    while let Some(ended) = in_flight.join_next().await {
        tally.count(ended?);
    }
    let ((descriptors, memory), (early_descriptors, early_memory)) =
        (resource_usage()?, early.unwrap_or_default());
    Ok(format!(
        "{{\"good\":{},\"bad\":{},\"descriptors\":[{early_descriptors},{descriptors}],\"kibibytes\":[{early_memory},{memory}]}}",
        tally.good, tally.bad
    ))
}

#[derive(Default)]
struct Tally {
    good: usize,
    bad: usize,
}

impl Tally {
    #[expect(clippy::print_stderr, reason = "the test prints the failures")]
    fn count(&mut self, status: Result<u16, Fault>) {
        match status {
            Ok(200) => self.good += 1,
            other => {
                self.bad += 1;
                eprintln!("{other:?}");
            }
        }
    }
}

fn transport(path: &Path, disable_http2: bool) -> Result<Transport, Fault> {
    Ok(Client::builder(Config::from_kubeconfig(path)?).http2(!disable_http2).build()?.into())
}

async fn status(transport: Transport) -> Result<u16, Fault> {
    let response = transport.send(http::Request::get("/version").body(Body::empty())?).await?;
    let status = response.status().as_u16();
    response.into_body().collect().await?;
    Ok(status)
}

/// Number of open descriptors, and resident memory in KiB.
fn resource_usage() -> Result<(usize, u64), Fault> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let memory = resident.trim().trim_end_matches(" kB").parse()?;
    Ok((std::fs::read_dir("/proc/self/fd")?.count(), memory))
}
