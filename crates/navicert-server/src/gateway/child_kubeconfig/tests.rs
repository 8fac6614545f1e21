use std::os::unix::fs::PermissionsExt;

use super::*;

fn write(base: &Path) -> ChildKubeconfig {
    let names = ContextNames { context: "prod".into(), cluster: "north".into(), namespace: "team".into() };
    let token = Secret::from("t0ken".to_owned());
    let endpoint = GatewayEndpoint {
        server: "https://127.0.0.1:1".into(),
        authority: "PEM",
        token: &token,
        names: &names,
    };
    ChildKubeconfig::write(base, &endpoint).unwrap()
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn kubeconfig_is_private_and_removed_on_drop() {
    let base = tempfile::tempdir().unwrap();
    let child = write(base.path());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(child.dir()), mode(&child.path())), (0o700, 0o600));
    drop(child);
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn kubeconfig_keeps_context_names_and_contains_only_the_token() {
    let base = tempfile::tempdir().unwrap();
    let child = write(base.path());
    let config = navicert_types::kubeconfig::decode(&fs::read(child.path()).unwrap()).unwrap();
    assert_eq!(config.current_context, "prod");
    let context = &config.contexts[0];
    assert_eq!((context.name.as_str(), context.context.namespace.as_str()), ("prod", "team"));
    assert_eq!((config.clusters[0].name.as_str(), context.context.cluster.as_str()), ("north", "north"));
    let expected = AuthInfo { token: "t0ken".to_owned().into(), ..AuthInfo::default() };
    assert_eq!(config.users[0].user, expected);
}

#[test]
fn removes_abandoned_directories_and_keeps_those_in_use() {
    let base = tempfile::tempdir().unwrap();
    let living = write(base.path());
    // As after SIGKILL: the lock is released, the files remain.
    let dead = base.path().join("navicert-run-dead");
    fs::create_dir(&dead).unwrap();
    for name in ["lock", "kubeconfig"] {
        fs::write(dead.join(name), "x").unwrap();
    }
    let foreign = base.path().join("something-else");
    fs::create_dir(&foreign).unwrap();
    remove_abandoned(base.path());
    assert!(!dead.exists() && living.path().exists() && foreign.exists());
}

#[test]
fn waits_for_the_lock_before_removing_a_directory() {
    let base = tempfile::tempdir().unwrap();
    let child = write(base.path());
    let (dir, path) = (child.dir().to_owned(), child.path());
    let waiting = {
        let dir = dir.clone();
        std::thread::spawn(move || remove_when_abandoned(&dir))
    };
    assert!(path.exists() && !waiting.is_finished());
    // Releases the lock without dropping the value, as when a process is killed.
    rustix::fs::flock(&child._lock, FlockOperation::Unlock).unwrap();
    waiting.join().unwrap().unwrap();
    assert!(!dir.exists());
    remove_when_abandoned(&dir).unwrap();
    assert!(remove_when_abandoned(base.path()).is_err(), "not a folder of a gateway's");
}

#[test]
fn finds_only_running_gateways_with_the_same_key() {
    let base = tempfile::tempdir().unwrap();
    let (private, shared) = (write(base.path()), write(base.path()));
    assert_eq!(find_announced(base.path(), "key"), None);
    shared.announce("key").unwrap();
    assert_eq!(find_announced(base.path(), "key"), Some(shared.path()));
    assert_eq!(find_announced(base.path(), "ke"), None);
    rustix::fs::flock(&shared._lock, FlockOperation::Unlock).unwrap();
    assert_eq!(find_announced(base.path(), "key"), None, "abandoned");
    drop((private, shared));
    assert_eq!(entries(base.path()), 0);
}
