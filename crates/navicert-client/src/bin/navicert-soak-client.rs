//! A program that sends requests with a kubeconfig for a while and then tells how that went: the soak test runs it, so that
//! its descriptors and memory are those of a client and of nothing else.
//!
//! Arguments: the kubeconfig, for how many milliseconds, and how many milliseconds lie between two requests. Half of the
//! requests go over HTTP/2 and half over HTTP/1.1. It prints one line of JSON.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use http_body_util::BodyExt;
use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
use navicert_client::transport::{self, Body, Environment, Transport};
use navicert_client::{exec, exec::Surroundings};
use navicert_types::{Clock, SystemClock};
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
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn soak() -> Result<String, Fault> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().map(PathBuf::from).ok_or("a kubeconfig is needed")?;
    let mut milliseconds = || -> Result<Duration, Fault> {
        let text = arguments.next().ok_or("two numbers of milliseconds are needed")?;
        Ok(Duration::from_millis(text.to_string_lossy().parse()?))
    };
    let (length, pause) = (milliseconds()?, milliseconds()?);
    let transports = [transport(&path, false)?, transport(&path, true)?];
    let (begun, mut ticks) = (SystemClock.monotonic(), tokio::time::interval(pause));
    let (mut under_way, mut tally, mut early) = (JoinSet::new(), Tally::default(), None);
    while SystemClock.monotonic() < begun + length {
        ticks.tick().await;
        for transport in &transports {
            under_way.spawn(status(transport.clone()));
        }
        while let Some(ended) = under_way.try_join_next() {
            tally.count(ended?);
        }
        // What is warmed up after a quarter of the time is what should still be there at the end.
        if early.is_none() && SystemClock.monotonic() >= begun + length / 4 {
            early = Some(belongings()?);
        }
    }
    while let Some(ended) = under_way.join_next().await {
        tally.count(ended?);
    }
    let ((descriptors, memory), (early_descriptors, early_memory)) =
        (belongings()?, early.unwrap_or_default());
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
    #[expect(clippy::print_stderr, reason = "a test shows what went wrong")]
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

#[expect(clippy::disallowed_methods, reason = "plugins inherit the environment of whoever runs them")]
fn transport(path: &Path, disable_http2: bool) -> Result<Transport, Fault> {
    let sources = Sources::locate(Some(path), None, None);
    let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), Path::new("/"), &Disk)?;
    let around = Surroundings::new(std::env::vars_os().collect());
    let environment = Environment { disable_http2, ..Environment::default() };
    Ok(transport::connect(&effective, &exec::Settings::default(), &around, &environment)?)
}

async fn status(transport: Transport) -> Result<u16, Fault> {
    let response = transport.send(http::Request::get("/version").body(Body::empty())?).await?;
    let status = response.status().as_u16();
    response.into_body().collect().await?;
    Ok(status)
}

/// Open descriptors, and resident memory in KiB.
fn belongings() -> Result<(usize, u64), Fault> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let memory = resident.trim().trim_end_matches(" kB").parse()?;
    Ok((std::fs::read_dir("/proc/self/fd")?.count(), memory))
}
