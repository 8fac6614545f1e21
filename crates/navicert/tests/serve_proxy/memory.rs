//! The proxy within the memory of the shipped deployment, 256 MiB: connections, unfinished heads, watches and requests at
//! once. Where this process may create a memory control group, the proxy runs in one and would be killed above the limit;
//! elsewhere the test compares its resident memory.

use std::fs;
use std::path::{Path, PathBuf};

use navicert_testkit::cli::process::Process;
use navicert_testkit::net::connection_flood::{ConnectionFlood, FloodPlan};
use navicert_testkit::net::load::sleep_period;
use navicert_testkit::{Program, RawClient, Watch, soak};
use serde_json::json;

use super::faults::requests;
use super::floods::FLOOD_TEST;
use super::setup::Setup;

/// Memory of the shipped deployment.
const MEMORY_BYTES: u64 = 256 << 20;

/// A control group with a memory limit; removed when dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Creates a group, of version 1 or 2, if that is possible here.
    fn create() -> Option<Self> {
        let name = format!("navicert-test-{}", std::process::id());
        let files = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        files.into_iter().find_map(|(mount, file)| {
            let folder = Path::new(mount).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = MemoryGroup(folder);
            // The file exists only where the memory controller is enabled.
            group
                .0
                .join(file)
                .exists()
                .then(|| fs::write(group.0.join(file), MEMORY_BYTES.to_string()).ok())??;
            Some(group)
        })
    }

    /// Runs a program in this group; the program's arguments follow.
    fn run(&self, program: &str) -> Program {
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        Program::new("/bin/sh").arguments(["-c", script]).arguments([self.0.as_os_str()]).arguments([program])
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn survives_connections_unfinished_heads_watches_and_requests_in_256_mib() {
    let factor = soak::factor();
    let (connections, heads, watches) =
        ((1_000 * factor).min(10_000), (50 * factor).min(500), (50 * factor).min(1_000));
    let setup = Setup::new();
    let group = MemoryGroup::create();
    let program = env!("CARGO_BIN_EXE_navicert");
    let limits = match &group {
        Some(_) => "{}".to_owned(),
        // The limits that the server derives from this much memory.
        None => "{connections: 4096, requests: 1024, unfinishedBytes: 33554432}".to_owned(),
    };
    setup.configure(
        &format!("{{selfCheck: off}}, limits: {limits}"),
        &json!({"claim": "sub", "prefix": "corp:"}),
    );
    let watch = Watch::new();
    setup.api.answer("/watch", watch.answer());
    let serving = match &group {
        Some(group) => setup.start_program(&setup.navicert_by(group.run(program), &[])).await,
        None => setup.start(&[]).await,
    };
    if group.is_some() {
        serving.program.wait_for_output("memory_bytes=268435456 memory_source=\"cgroup\"").await;
    }
    let load = requests(&setup, &serving);
    let mut held = Vec::new();
    let token = setup.token(&json!({}));
    let watching = format!("GET /watch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
    for _ in 0..watches {
        let mut client = RawClient::connect_tls(serving.address, &setup.ca, None, &["http/1.1"]).await;
        client.write(watching.as_bytes()).await;
        held.push(client);
    }
    watch.wait_for_opened(watches).await;
    let head = format!("GET /api HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(248_000));
    for _ in 0..heads {
        let mut client = RawClient::connect_tls(serving.address, &setup.ca, None, &["http/1.1"]).await;
        let _ = client.try_write(head.as_bytes()).await;
        held.push(client);
    }
    let plan = FloodPlan {
        address: serving.address,
        idle: connections,
        resetting: 0,
        path: "/api".to_owned(),
        token: String::new(),
    };
    let flood = ConnectionFlood::start(FLOOD_TEST, &setup.ca, &plan).await;
    load.more(100).await;
    sleep_period().await;
    let resident = Process(serving.program.pid()).resident().unwrap();
    let what = if group.is_some() { "in a control group" } else { "by its resident memory" };
    load.end(&format!(
        "{connections} connections, {heads} unfinished heads, {watches} watches {what}: {resident} KiB"
    ))
    .await;
    assert!(resident * 1024 < MEMORY_BYTES, "{resident} KiB");
    flood.stop().await;
    watch.finish();
    drop(held);
    serving.end().await;
}
