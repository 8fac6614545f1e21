use std::os::unix::fs::PermissionsExt;

use super::*;

fn write(base: &Path) -> ChildKubeconfig {
    let names = Names { context: "prod".into(), cluster: "north".into(), namespace: "team".into() };
    let token = Secret::from("t0ken".to_owned());
    let whereabouts =
        Whereabouts { server: "https://127.0.0.1:1".into(), authority: "PEM", token: &token, names: &names };
    ChildKubeconfig::write(base, &whereabouts).unwrap()
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn the_file_is_its_owners_alone_and_goes_with_the_value() {
    let base = tempfile::tempdir().unwrap();
    let child = write(base.path());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(child.folder()), mode(&child.path())), (0o700, 0o600));
    drop(child);
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn the_child_keeps_the_names_it_knows_and_gets_nothing_else() {
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
fn a_sweep_removes_what_is_abandoned_and_leaves_the_living() {
    let base = tempfile::tempdir().unwrap();
    let living = write(base.path());
    // As after SIGKILL: the lock is gone, the files are not.
    let dead = base.path().join("navicert-run-dead");
    fs::create_dir(&dead).unwrap();
    for name in ["lock", "kubeconfig"] {
        fs::write(dead.join(name), "x").unwrap();
    }
    let foreign = base.path().join("something-else");
    fs::create_dir(&foreign).unwrap();
    sweep(base.path());
    assert!(!dead.exists() && living.path().exists() && foreign.exists());
}

#[test]
fn whoever_waits_for_an_abandoned_folder_removes_it_then_and_not_before() {
    let base = tempfile::tempdir().unwrap();
    let child = write(base.path());
    let (folder, path) = (child.folder().to_owned(), child.path());
    let waiting = {
        let folder = folder.clone();
        std::thread::spawn(move || remove_when_abandoned(&folder))
    };
    assert!(path.exists() && !waiting.is_finished());
    // The lock goes without the value being dropped, as it does when a process is killed.
    rustix::fs::flock(&child._lock, FlockOperation::Unlock).unwrap();
    waiting.join().unwrap().unwrap();
    assert!(!folder.exists());
    remove_when_abandoned(&folder).unwrap();
    assert!(remove_when_abandoned(base.path()).is_err(), "not a folder of a gateway's");
}

#[test]
fn only_a_private_runtime_folder_is_used() {
    let runtime = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let found = base(Some(runtime.path()), temporary.path()).unwrap();
    assert!(!found.starts_with(runtime.path()), "{}", found.display());
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let found = base(Some(runtime.path()), temporary.path()).unwrap();
    assert_eq!(found, runtime.path().join("navicert"));
    assert_eq!(fs::metadata(&found).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(base(Some(runtime.path()), temporary.path()).unwrap(), found, "and once more");
    fs::remove_dir(&found).unwrap();
    std::os::unix::fs::symlink("/", &found).unwrap();
    assert_ne!(base(Some(runtime.path()), temporary.path()).unwrap(), found, "a link is nobody's folder");
}

#[test]
fn only_a_living_gateway_that_announced_the_same_key_is_joined() {
    let base = tempfile::tempdir().unwrap();
    let (private, shared) = (write(base.path()), write(base.path()));
    assert_eq!(find(base.path(), "key"), None);
    shared.announce("key").unwrap();
    assert_eq!(find(base.path(), "key"), Some(shared.path()));
    assert_eq!(find(base.path(), "ke"), None);
    rustix::fs::flock(&shared._lock, FlockOperation::Unlock).unwrap();
    assert_eq!(find(base.path(), "key"), None, "abandoned");
    drop((private, shared));
    assert_eq!(entries(base.path()), 0);
}
