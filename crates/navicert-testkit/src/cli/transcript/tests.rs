//! Transcripts run against small system programs: matching, mismatching, overwriting.

use super::*;

fn context() -> TestContext {
    TestContext::new().program("sh", "/bin/sh").program("cat", "/bin/cat").program("env", "/usr/bin/env")
}

fn checked(text: &str, overwrite: bool) -> (Result<(), String>, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.md");
    std::fs::write(&path, text).unwrap();
    let result = check(&path, &context(), overwrite);
    let result = result.map_err(|report| report.replace(&path.display().to_string(), "test.md"));
    (result, std::fs::read_to_string(&path).unwrap())
}

const HONEST: &str = r#"# Honest

```yaml file=~/.kube/config
apiVersion: v1
```

```sh file=tool mode=755
#!/bin/sh
echo tool; exit 4
```

```console
$ cat < tool
#!/bin/sh
echo tool; exit 4
$ sh -c 'echo out; echo err >&2; exit 3'
out
[stderr]
err
[exit 3]
$ sh -c 'cat "$HOME/.kube/config"; printf end'
apiVersion: v1
end
[no newline]
$ sh -c ./tool
tool
[exit 4]
$ sh -c 'kill -15 $$'
[signal 15]
$ WHO=ann env
...
WHO=ann
$ cat <<END
> one
>
> two
> END
one

two
$ sh -c 'pwd; echo $HOME; echo https://127.0.0.1:54321 2026-01-02T03:04:05Z'
[DIRECTORY]
[HOME]
https://127.0.0.1:[PORT] [TIME]
$ sh -c true
```

```console merged
$ sh -c 'echo 1; echo 2 >&2; echo 3'
1
2
3
```

```console skip="needs a cluster"
$ kubectl get pods
```
"#;

#[test]
fn correct_transcript_passes_unchanged() {
    assert_eq!(checked(HONEST, false), (Ok(()), HONEST.to_owned()));
    assert_eq!(checked(HONEST, true), (Ok(()), HONEST.to_owned()));
}

#[test]
fn reports_all_mismatches_with_line_and_diff() {
    let text = "```console\n$ sh -c 'echo a; echo b'\na\nc\n$ sh -c 'exit 2'\n```\n";
    let (result, after) = checked(text, false);
    let report = result.unwrap_err();
    assert_eq!(
        report,
        "test.md:2: $ sh -c 'echo a; echo b'\n    a\n  - c\n  + b\ntest.md:5: $ sh -c 'exit 2'\n  + [exit 2]\n\
         run again with NAVICERT_TRANSCRIPTS=overwrite to accept what is printed now"
    );
    assert_eq!(after, text, "nothing is written unasked");
}

#[test]
fn overwriting_changes_what_differs_and_nothing_else() {
    let text = "prose\n```console\n$ sh -c 'echo a; echo b'\n...\nb\n$ sh -c 'echo new'\nold\n```\nmore\n";
    let (result, after) = checked(text, true);
    assert_eq!(result, Ok(()));
    assert_eq!(after, text.replace("old\n", "new\n"));
    assert_eq!(checked(&after, false).0, Ok(()));
}

#[test]
fn unsupported_command_is_rejected_with_its_line() {
    for (text, message) in [
        ("nothing\n", "it runs no command"),
        ("```console skip=\"x\"\n$ sh\n```\n", "it runs no command"),
        ("```console\n$ rm -rf x\n```\n", "test.md:2: `rm` is no program this context knows"),
        ("```console\n$ /bin/sh\n```\n", "`/bin/sh` is no program"),
        ("```console\n$ sh | cat\n```\n", "test.md:2: `|` needs a shell"),
        ("```console\n$ cat < ../x\n```\n", "`../x` leads out of the sandbox"),
        ("```text file=/etc/x\n```\n", "test.md:1: `/etc/x` leads out of the sandbox"),
        ("```console\n$ sh -c 'echo \"$ x\"'\n```\n", "would be read as Markdown"),
    ] {
        let report = checked(text, true).0.unwrap_err();
        assert!(report.contains(message), "{report}");
    }
}

#[test]
fn a_program_sees_nothing_of_the_test_runs_environment() {
    let outcome = context().variable("SET", "by the context").run("ALSO=set env");
    let text = String::from_utf8(outcome.stdout).unwrap();
    let mut names: Vec<&str> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ALSO", "HOME", "PATH", "SET", "TMPDIR"]);
}

#[test]
fn filters_and_copied_files_serve_a_transcript() {
    let fixtures = tempfile::tempdir().unwrap();
    std::fs::create_dir(fixtures.path().join("deep")).unwrap();
    std::fs::write(fixtures.path().join("deep/file"), "version 1.2.3 of 77\n").unwrap();
    let context =
        context().copy(fixtures.path()).replace("1.2.3", "[VERSION]").filter(r"of (\d)\d", "of $1[DIGIT]");
    let command = command::parse("cat deep/file", &[]).unwrap();
    assert_eq!(context.print(&command, false).unwrap(), ["version [VERSION] of 7[DIGIT]"]);
}

#[test]
#[should_panic(expected = "no transcripts in")]
fn an_empty_directory_proves_nothing() {
    check_directory(tempfile::tempdir().unwrap().path(), context);
}

#[test]
#[should_panic(expected = "two.md:2")]
fn a_directory_is_checked_file_by_file() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("one.md"), "```console\n$ sh -c 'echo 1 >f'\n```\n").unwrap();
    // A fresh context: the file the first transcript made is not there.
    std::fs::write(directory.path().join("two.md"), "```console\n$ sh -c 'cat f 2>/dev/null'\n1\n```\n")
        .unwrap();
    check_directory(directory.path(), context);
}
