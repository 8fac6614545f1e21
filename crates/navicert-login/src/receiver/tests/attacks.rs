//! Each attack on the receiver leaves the waiting login as it was, or ends it with an error that says so.

use navicert_testkit::{Program, report};

use super::*;

#[tokio::test]
async fn stranger_cannot_end_a_login() {
    // L911, L1301: without the state nothing has an effect, least of all an error.
    survives(bind(), async |site| {
        for (query, status) in [
            ("", 400),
            ("?", 400),
            ("?error=access_denied", 400),
            ("?code=evil", 400),
            ("?code=evil&state=", 400),
            ("?code=evil&state=guess", 400),
            ("?error=access_denied&state=guess", 400),
            ("?code=evil&state=right&state=right", 400),
            ("?code=evil&code=abc&state=right", 400),
            ("?error=a&error=b&state=right", 400),
            ("?code=evil&state=RIGHT", 400),
            ("?state=rightx&code=evil", 400),
        ] {
            let reply = site.get(&format!("/callback{query}")).await;
            assert_eq!(reply.status, status, "{query}");
            assert!(!reply.body.contains("right") && !reply.body.contains("login.example"), "{reply:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_but_the_start_link_tells_the_authorization_url() {
    survives(bind(), async |site| {
        let wrong_id = format!("{}x", site.start_path);
        for path in
            ["/", "/start/", "/start", "/start/AAAAAAAAAAAAAAAAAAAAAA", &wrong_id, "/done/", "/favicon.ico"]
        {
            let reply = site.get(path).await;
            assert_eq!((reply.status, reply.location()), (404, ""), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn ten_wrong_states_end_the_login() {
    // L1230
    let receiver = bind();
    let site = Site::of(&receiver);
    let (outcome, ()) = serve_while(receiver, async {
        for guess in 0..MAX_WRONG_STATES {
            assert_eq!(site.get(&format!("/callback?code=evil&state={guess}")).await.status, 400);
        }
    })
    .await;
    assert_eq!(outcome, Err(AnswerError::Strangers { address: site.address }));
}

#[tokio::test]
async fn requests_of_pages_have_no_effect() {
    // L905, LA9. The right state would end the login: what counts is that these are not looked at.
    survives(bind(), async |site| {
        for (name, value) in [
            ("Sec-Fetch-Mode", "no-cors"),
            ("Sec-Fetch-Mode", "cors"),
            ("Sec-Fetch-Dest", "iframe"),
            ("Sec-Fetch-Dest", "image"),
            ("Origin", "https://evil.example"),
        ] {
            for _ in 0..200 {
                let reply = site.get_with("/callback?error=x&state=guess", &[(name, value)]).await;
                assert_eq!(reply.status, 403, "{name}: {value}");
            }
            let answer = site.get_with(CALLBACK, &[(name, value)]).await;
            assert_eq!(answer.status, 403, "{name}: {value}");
            assert_eq!(site.get_with(&site.start_path, &[(name, value)]).await.location(), "");
        }
    })
    .await;
}

#[tokio::test]
async fn rebound_name_has_no_effect() {
    // L904, L1311
    survives(bind(), async |site| {
        let port = site.address.port();
        for host in
            ["evil.example".to_owned(), format!("evil.example:{port}"), format!("127.0.0.1.nip.io:{port}")]
        {
            for target in [CALLBACK, &site.start_path] {
                let reply = site.get_with(target, &[("Host", &host)]).await;
                assert_eq!((reply.status, reply.location()), (421, ""), "{host} {target}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn answer_of_another_provider_is_never_exchanged() {
    // L911 step 3, L1304
    for iss in ["&iss=https%3A%2F%2Fevil.example", ""] {
        let receiver = bind();
        let site = Site::of(&receiver);
        let (outcome, page) = serve_while(receiver, async {
            let answered = site.get(&format!("/callback?code=evil&state=right{iss}")).await;
            site.get(answered.location()).await
        })
        .await;
        assert!(matches!(outcome, Err(AnswerError::MixUp { .. })), "{outcome:?}");
        assert!(page.body.contains("<title>Not logged in</title>"));
    }
}

#[tokio::test]
async fn other_user_of_this_machine_is_not_served() {
    // L903, L1301: with everything that a process list or a log could have told him.
    let can_change_user =
        Program::new("setpriv").arguments(["--reuid=65534", "--clear-groups", "--", "true"]).run();
    if !can_change_user.is_ok_and(|outcome| outcome.code() == Some(0)) {
        return report::skipped("login by another user", "needs root and setpriv");
    }
    survives(bind(), async |site| {
        let (port, start) = (site.address.port(), site.start_path.clone());
        for target in [CALLBACK, &start, "/callback?error=access_denied&state=right", "/"] {
            let script = format!(
                "trap '' PIPE; exec 3<>/dev/tcp/127.0.0.1/{port} && \
                 printf 'GET {} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n' >&3; cat <&3; echo end",
                target.replace('%', "%%")
            );
            let run = tokio::task::spawn_blocking(move || {
                let user = ["--reuid=65534", "--clear-groups", "--", "bash", "-c", &script];
                Program::new("setpriv").arguments(user).run().unwrap()
            });
            let run = run.await.unwrap();
            // bash writes line by line: without the trap it ends by SIGPIPE, with or without an answer.
            assert_eq!(run.code(), Some(0), "{target}: the client ran to its end");
            assert_eq!(String::from_utf8(run.stdout).unwrap(), "end\n", "{target}: closed without an answer");
        }
    })
    .await;
}

#[tokio::test]
async fn same_client_as_this_user_is_served() {
    // The counterpart of the test above: its client works, and only the user makes the difference.
    survives(bind(), async |site| {
        let port = site.address.port();
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n' >&3; cat <&3"
        );
        let run = tokio::task::spawn_blocking(move || Program::new("bash").arguments(["-c", &script]).run().unwrap());
        let stdout = run.await.unwrap().stdout;
        assert!(stdout.starts_with(b"HTTP/1.1 404"), "{}", String::from_utf8_lossy(&stdout));
    })
    .await;
}

#[tokio::test]
async fn unknown_owner_needs_the_cookie_of_the_start_link() {
    // L902, L903
    let receiver = bind_without_owners();
    let site = Site::of(&receiver);
    let (outcome, ()) = serve_while(receiver, async {
        for headers in [&[][..], &[("Cookie", "navicert_00000000=x")], &[("Cookie", "x=y; z")]] {
            let stolen = site.get_with(CALLBACK, headers).await;
            assert_eq!(stolen.status, 403, "{headers:?}");
        }
        let started = site.get(&site.start_path).await;
        assert_eq!((started.status, started.location()), (303, AUTHORIZATION_URL));
        let cookie = started.cookie();
        for form in started.headers("set-cookie") {
            assert!(form.contains("; HttpOnly; SameSite=Lax; Path=/"), "{form}");
        }
        let paths: Vec<_> = started
            .headers("set-cookie")
            .iter()
            .map(|form| form.rsplit("Path=").next().unwrap().to_owned())
            .collect();
        assert_eq!(paths, [site.start_path.clone(), "/callback".to_owned()]);
        // Another browser that has the link is too late; the same one may use it again.
        let second = site.get(&site.start_path).await;
        assert_eq!((second.status, second.location()), (410, ""));
        assert!(second.body.contains("This link has been used"));
        let again = site.get_with(&site.start_path, &[("Cookie", &cookie)]).await;
        assert_eq!((again.status, again.location()), (303, AUTHORIZATION_URL));
        let changed = format!("{cookie}x");
        assert_eq!(site.get_with(CALLBACK, &[("Cookie", &changed)]).await.status, 403);
        let others = format!("a=b; {cookie}; c=d");
        let answered = site.get_with(CALLBACK, &[("Cookie", &others)]).await;
        assert_eq!(answered.status, 303);
        assert!(site.get(answered.location()).await.body.contains("Logged in"));
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
}

#[tokio::test]
async fn cookie_for_a_posted_answer_is_one_that_browsers_send_across_sites() {
    let receiver = bind_without_owners();
    let site = Site::of(&receiver);
    let login = PendingLogin { response_mode: ResponseMode::FormPost, ..pending_login() };
    let serving = receiver.serve(login, keep);
    let client = async {
        let started = site.get(&site.start_path).await;
        let forms = started.headers("set-cookie");
        assert_eq!(forms.len(), 3, "{forms:?}");
        assert!(forms[0].ends_with(&format!("; SameSite=Lax; Path={}", site.start_path)), "{forms:?}");
        assert!(forms[1].ends_with("; HttpOnly; SameSite=None; Secure; Path=/callback"), "{forms:?}");
        assert!(forms[2].ends_with("; HttpOnly; Path=/callback"), "{forms:?}");
    };
    tokio::select! {
        _ = serving => panic!("no answer was given"),
        () = client => {}
    }
}

#[tokio::test]
async fn user_may_open_the_start_link_again() {
    // L902: where the owner is known.
    survives(bind(), async |site| {
        for _ in 0..3 {
            assert_eq!(site.get(&site.start_path).await.location(), AUTHORIZATION_URL);
        }
    })
    .await;
}

#[tokio::test]
async fn second_answer_changes_nothing() {
    // L911 step 4, L1313: back button, reload, a second tab.
    let receiver = bind();
    let site = Site::of(&receiver);
    let mut calls = 0;
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let serving = receiver.serve(pending_login(), async |answer| {
        calls += 1;
        released.await.unwrap();
        keep(answer).await
    });
    let browser = async {
        let first = async { site.get(CALLBACK).await };
        let others = async {
            // The first has been taken when the link no longer leads to the provider.
            while site.get(&site.start_path).await.status == 303 {}
            for target in
                [CALLBACK, "/callback?error=x&state=right&iss=https://login.example", &site.start_path]
            {
                let reply = site.get(target).await;
                assert_eq!(reply.status, 409, "{target}");
                assert!(reply.body.contains("This login has been answered"));
            }
            assert_eq!(site.get("/callback?code=x&state=guess").await.status, 400);
            release.send(()).unwrap();
        };
        let (first, ()) = tokio::join!(first, others);
        site.get(first.location()).await
    };
    let (outcome, page) = Box::pin(within("the login", async { tokio::join!(serving, browser) })).await;
    assert_eq!(outcome, Ok("abc".to_owned()));
    assert!(page.body.contains("<title>Logged in</title>"));
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn escapes_of_a_provider_reach_neither_terminal_nor_page() {
    // L1302, L1303
    let receiver = bind();
    let site = Site::of(&receiver);
    let (outcome, page) = serve_while(receiver, async {
        let query = "error=%1b%5b2J%3Cscript%3E&error_description=%1b%5d52;c;eA==%07%e2%80%ae%3Cimg+src=x%3E\
                     &state=right&iss=https://login.example";
        let answered = site.get(&format!("/callback?{query}")).await;
        site.get(answered.location()).await
    })
    .await;
    let shown = outcome.unwrap_err().to_string();
    for text in [shown.as_str(), &page.body] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }
    assert!(!page.body.contains("<script") && !page.body.contains("<img"), "{page:?}");
    let mix_up =
        AnswerError::MixUp { answered: Some("\u{1b}[2J".to_owned()), expected: "https://a".to_owned() };
    assert!(!mix_up.to_string().contains('\u{1b}'));
}

#[tokio::test]
async fn late_answer_finds_a_closed_port() {
    // L1309: the time limit drops the login, and the port with it.
    let receiver = bind();
    let site = Site::of(&receiver);
    let serving = receiver.serve(pending_login(), keep);
    let started = tokio::select! {
        _ = serving => panic!("no answer was sent"),
        started = site.get(&site.start_path) => started,
    };
    assert_eq!(started.status, 303);
    assert!(tokio::net::TcpStream::connect(site.address).await.is_err());
}
