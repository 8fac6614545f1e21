//! Changes of hand-written files line by line, and of random files: only the intended value differs, every other byte is the same.

use proptest::prelude::*;

use super::*;

const USER: &str =
    r#"{"name": "new", "user": {"exec": {"command": "navicert", "args": ["login", "--x=y z"]}}}"#;

fn node(json: &str) -> Node {
    parse(json.as_bytes(), Syntax::Json).unwrap()
}

fn editor(text: &str) -> DocumentEditor {
    DocumentEditor::new(text, Syntax::Yaml).unwrap()
}

fn appended(text: &str) -> Result<String, EditError> {
    let mut editor = editor(text);
    editor.append(&[], "users", &node(USER))?;
    Ok(editor.expose_text().to_owned())
}

const NEW_ITEM: &str = "- name: new\n  user:\n    exec:\n      command: navicert\n      args:\n      - login\n      - \"--x=y z\"\n";

fn indented_item(indent: usize) -> String {
    position::indented(NEW_ITEM, indent)
}

// L1112
#[test]
fn item_is_added_after_the_last_one_and_its_comments() {
    for (before, after, indent) in [
        ("users:\n- name: a\n  user: {}\n", "", 0),
        ("users:\n- name: a\n  user:\n    token: x # mine\n", "# about contexts\ncontexts: []\n", 0),
        ("users:\n  - name: a\n    user:\n      token: x\n", "\ncontexts: []\n", 2),
        ("users:\n- name: a\n  user:\n    token: x\n    # token: old\n", "contexts: []\n", 0),
        (
            "users:\n- name: a\n  user:\n    client-key-data: |\n      text\n      more\n",
            "\n\nkind: Config\n",
            0,
        ),
        ("users:\n- name: a\n  user: &u {token: 'x'}\n- name: b\n  user: \"\"\n", "kind: Config\n", 0),
        ("users:\n- name: a\n  user:\n", "kind: Config\n", 0),
        ("users:\n- name: a\n  user:\n    token: x\n", "---\nsecond: document\n", 0),
        ("users:\n- name: a\n  user:\n    token: >-\n      folded\n      text\n", "...\n", 0),
    ] {
        let text = format!("{before}{after}");
        assert_eq!(
            appended(&text).unwrap_or_else(|error| panic!("{text}: {error}")),
            format!("{before}{}{after}", indented_item(indent))
        );
    }
}

// L1112
#[test]
fn list_at_the_column_of_its_key_is_replaced() {
    for (list, expected) in [
        ("  names:\n  - a\n", "  names:\n  - b\n  - c\n"),
        ("  names:\n    - a\n    - x\n", "  names:\n    - b\n    - c\n"),
        ("  names: [a]\n", "  names:\n  - b\n  - c\n"),
    ] {
        let text = |list: &str| format!("items:\n- first: 1\n{list}  last: 2\n- first: 3\n");
        let mut editor = editor(&text(list));
        let path = [EditStep::Key("items"), EditStep::Index(0)];
        editor.set(&path, "names", &node(r#"["b", "c"]"#)).unwrap();
        assert_eq!(editor.expose_text(), text(expected));
    }
}

#[test]
fn missing_and_empty_lists_are_created() {
    let list = format!("users:\n{NEW_ITEM}");
    let comment = format!("users: # people\n{NEW_ITEM}");
    for (text, expected) in [
        (String::new(), list.clone()),
        ("# only a comment\n".to_owned(), format!("# only a comment\n{list}")),
        ("kind: Config\n".to_owned(), format!("kind: Config\n{list}")),
        ("kind: Config".to_owned(), format!("kind: Config\n{}", list.trim_end())),
        ("users:\nkind: Config\n".to_owned(), format!("{list}kind: Config\n")),
        ("users: []\nkind: Config\n".to_owned(), format!("{list}kind: Config\n")),
        ("users: null # people\nkind: Config\n".to_owned(), format!("{comment}kind: Config\n")),
        ("users: # people\nkind: Config\n".to_owned(), format!("{comment}kind: Config\n")),
    ] {
        assert_eq!(appended(&text).unwrap_or_else(|error| panic!("{text}: {error}")), expected, "{text}");
    }
}

#[test]
fn line_ends_and_a_missing_last_one_are_kept() {
    let text = "users:\r\n- name: a\r\nkind: Config\r\n";
    let expected = format!("users:\r\n- name: a\r\n{}kind: Config\r\n", NEW_ITEM.replace('\n', "\r\n"));
    assert_eq!(appended(text).unwrap(), expected);
    assert_eq!(appended("users:\n- name: a").unwrap(), format!("users:\n- name: a\n{}", NEW_ITEM.trim_end()));
}

#[test]
fn json_keeps_its_layout() {
    let flow = r#"{"name": "new", "user": {"exec": {"command": "navicert", "args": ["login", "--x=y z"]}}}"#;
    for (text, expected) in [
        (r#"{"users":[{"name":"a"}],"kind":"Config"}"#, format!(r#"{{"users":[{{"name":"a"}}, {flow}],"kind":"Config"}}"#)),
        (r#"{"users":[],"kind":"Config"}"#, format!(r#"{{"users":[{flow}],"kind":"Config"}}"#)),
        (r#"{"kind":"Config"}"#, format!(r#"{{"kind":"Config", "users": [{flow}]}}"#)),
        ("{}", format!(r#"{{"users": [{flow}]}}"#)),
        ("users: [{name: a}, ] # c\n", format!("users: [{{name: a}}, {flow}, ] # c\n")),
        ("users: [\n  a, # first\n  b # last\n]\n", "users: [\n  a, # first\n  b, # last\n  {\n    \"name\": \"new\",\n    \"user\": {\n      \"exec\": {\n        \"command\": \"navicert\",\n        \"args\": [\n          \"login\",\n          \"--x=y z\"\n        ]\n      }\n    }\n  }\n]\n".to_owned()),
    ] {
        assert_eq!(appended(text).unwrap_or_else(|error| panic!("{text}: {error}")), expected);
    }
    let pretty = "{\n    \"kind\": \"Config\",\n    \"users\": [\n        {\n            \"name\": \"a\"\n        }\n    ]\n}\n";
    let mut json = DocumentEditor::new(pretty, Syntax::Json).unwrap();
    json.append(&[], "users", &node(r#"{"name": "b"}"#)).unwrap();
    let expected =
        pretty.replace("        }\n", "        },\n        {\n            \"name\": \"b\"\n        }\n");
    assert_eq!(json.expose_text(), expected);
}

fn context_user(text: &str, name: &str) -> Result<String, EditError> {
    let mut editor = editor(text);
    let path = [EditStep::Key("contexts"), EditStep::Index(0), EditStep::Key("context")];
    editor.set(&path, "user", &Node::new(name))?;
    Ok(editor.expose_text().to_owned())
}

// L1112
#[test]
fn value_is_replaced_in_its_place() {
    for (text, expected) in [
        ("context:\n    user: ann # me\n    cluster: c\n", "context:\n    user: bob # me\n    cluster: c\n"),
        ("context: {user: ann, cluster: c}\n", "context: {user: \"bob\", cluster: c}\n"),
        ("context:\n    cluster: c\n", "context:\n    cluster: c\n    user: bob\n"),
        ("context: {cluster: c}\n", "context: {cluster: c, \"user\": \"bob\"}\n"),
        ("context:\n    user: 'ann'\n", "context:\n    user: bob\n"),
        ("context:\n    user:\n      ann\n", "context:\n    user:\n      bob\n"),
        ("context:\n    user:\n    cluster: c\n", "context:\n    user: bob\n    cluster: c\n"),
        ("context:\n", "context:\n    user: bob\n"),
        ("context: {} # none\n", "context: # none\n    user: bob\n"),
    ] {
        let frame = |part: &str| format!("# file\ncontexts:\n- name: dev\n  {part}\n# end\n");
        assert_eq!(context_user(&frame(text), "bob").unwrap(), frame(expected), "{text}");
    }
    let quoted = context_user("contexts: [{context: {user: a}}]", "yes: no").unwrap();
    assert_eq!(quoted, "contexts: [{context: {user: \"yes: no\"}}]");
}

#[test]
fn mapping_replaces_whatever_was_there() {
    let exec = node(r#"{"exec": {"command": "navicert"}}"#);
    for (user, expected) in [
        (
            "user: # mine\n    token: x\n    other: [1,\n      2]\n",
            "user: # mine\n    exec:\n      command: navicert\n",
        ),
        ("user: {token: x} # mine\n", "user: # mine\n    exec:\n      command: navicert\n"),
        ("user: {\n    token: x\n  }\n", "user:\n    exec:\n      command: navicert\n"),
        ("user:\n", "user:\n    exec:\n      command: navicert\n"),
        ("user:\n      token: |\n        x\n        y\n", "user:\n      exec:\n        command: navicert\n"),
    ] {
        let frame = |part: &str| format!("users:\n- name: a\n  {part}- name: b\n  user: {{}} # b\n");
        let text = frame(user);
        let mut editor = editor(&text);
        editor
            .set(&[EditStep::Key("users"), EditStep::Index(0)], "user", &exec)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(editor.expose_text(), frame(expected), "{text}");
    }
}

#[test]
fn change_that_would_reach_elsewhere_is_refused() {
    for text in [
        // The second user is the first one.
        "users:\n- &a {name: a}\n- *a\n",
        "base: &b\n  users:\n  - name: a\n<<: *b\n",
    ] {
        let error = appended(text).unwrap_err();
        assert!(matches!(error, EditError::Entangled { .. }), "{text}: {error}");
    }
    let shared = "contexts:\n- context: &c\n    user: a\n- context: *c\n";
    assert!(matches!(context_user(shared, "b"), Err(EditError::Entangled { .. })));
    let alias = "x: &c {user: a}\ncontexts:\n- context: *c\n";
    assert!(context_user(alias, "b").is_err());
    assert_eq!(appended("users: text\n").unwrap_err().to_string(), "`users` is a string, expected a list");
    assert_eq!(
        context_user("contexts: []\n", "b").unwrap_err(),
        EditError::Missing { path: FieldPath::root().field("contexts").index(0) }
    );
}

/// A piece of a random kubeconfig: a list of users in one of several layouts, with comments, and what stands around it.
fn random_file() -> impl Strategy<Value = String> {
    let comment =
        prop_oneof![Just(String::new()), "[a-z :#'\"]{0,12}".prop_map(|text| format!(" # {text}")),];
    let scalar = prop_oneof![
        "[a-z][a-z0-9-]{0,8}".prop_map(|text| text),
        "[a-z ]{1,8}".prop_map(|text| format!("'{text}'")),
        "[a-z]{1,8}".prop_map(|text| format!("\"{text}\\n\"")),
        Just("|\n      line\n\n      more".to_owned()),
        Just(">-\n      folded\n      text".to_owned()),
        Just("[1, {a: b}]".to_owned()),
        Just(String::new()),
    ];
    let field = ("[a-z]{2,6}", scalar, comment.clone());
    let entry = (proptest::collection::vec(field, 1..4), comment.clone(), any::<bool>());
    let gap = prop_oneof![Just(""), Just("\n"), Just("# between\n"), Just("  # deep\n"), Just("\n\n# far\n")];
    (proptest::collection::vec((entry, gap), 0..4), comment, any::<bool>(), any::<bool>()).prop_map(
        |(entries, comment, has_tail, is_crlf)| {
            let mut text = format!("# head{comment}\nkind: Config\nusers:{comment}\n");
            for (number, ((fields, comment, is_quoted), gap)) in entries.iter().enumerate() {
                let name = if *is_quoted { format!("'u{number}'") } else { format!("u{number}") };
                text.push_str(&format!("- name: {name}{comment}\n  user:\n"));
                for (index, (key, value, comment)) in fields.iter().enumerate() {
                    let comment = if value.contains('\n') { "" } else { comment };
                    text.push_str(&format!("    {key}{index}: {value}{comment}\n"));
                }
                text.push_str(gap);
            }
            if has_tail {
                text.push_str(
                    "# tail\ncontexts:\n- name: c\n  context: {user: u0}\ncurrent-context: c # now\n",
                );
            }
            if is_crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

/// The text that was added, if everything else is as it was.
fn added(before: &str, after: &str) -> Option<String> {
    let prefix = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let suffix =
        before.bytes().rev().zip(after.bytes().rev()).take_while(|(one, other)| one == other).count();
    (prefix + suffix >= before.len())
        .then(|| after.get(prefix..after.len() - (before.len() - prefix)).unwrap_or_default().to_owned())
}

proptest! {
    // L1112
    #[test]
    fn only_the_new_item_differs(text in random_file()) {
        let before = parse(text.as_bytes(), Syntax::Yaml).unwrap();
        let edited = appended(&text).unwrap();
        prop_assert!(added(&text, &edited).is_some(), "{text}\n---\n{edited}");
        let after = parse(edited.as_bytes(), Syntax::Yaml).unwrap();
        let users = |root: &Node| find(root, &[EditStep::Key("users")]).and_then(Node::as_sequence).unwrap_or_default().to_vec();
        let (old, new) = (users(&before), users(&after));
        prop_assert_eq!(new.len(), old.len() + 1);
        prop_assert!(old.iter().zip(&new).all(|(one, other)| one == other));
        prop_assert!(new.last() == Some(&node(USER)));
        for key in ["kind", "contexts", "current-context"] {
            prop_assert!(find(&before, &[EditStep::Key(key)]) == find(&after, &[EditStep::Key(key)]), "{}", key);
        }
    }

    // L1112
    #[test]
    fn replaced_user_leaves_all_lines_of_others(text in random_file(), index in 0usize..4) {
        let mut editor = editor(&text);
        let count = find(editor.root(), &[EditStep::Key("users")]).and_then(Node::as_sequence).map_or(0, <[Node]>::len);
        prop_assume!(index < count);
        let before = editor.root().clone();
        editor.set(&[EditStep::Key("users"), EditStep::Index(index)], "user", &node(r#"{"token": "new"}"#)).unwrap();
        let edited = editor.expose_text();
        let line = format!("u{index}");
        let head = text.find(&format!("- name: {line}")).or_else(|| text.find(&format!("- name: '{line}'"))).unwrap();
        prop_assert!(edited.starts_with(text.get(..head).unwrap()));
        let next = format!("u{}", index + 1);
        let tail = [format!("- name: {next}"), format!("- name: '{next}'"), "# tail".to_owned()].iter().filter_map(|mark| text.find(mark.as_str())).min().unwrap_or(text.len());
        prop_assert!(edited.ends_with(text.get(tail..).unwrap()));
        for other in (0..count).filter(|other| *other != index) {
            let path = [EditStep::Key("users"), EditStep::Index(other)];
            prop_assert!(find(&before, &path) == find(editor.root(), &path));
        }
    }
}
