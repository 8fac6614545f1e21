//! Structure, size, headers and escaping of the pages.

use http_body_util::BodyExt as _;

use super::*;

const NOTICES: [Notice; 12] = [
    Notice::LinkUsed,
    Notice::AlreadyAnswered,
    Notice::NoAnswer,
    Notice::WrongState,
    Notice::Ambiguous,
    Notice::AnotherBrowser,
    Notice::NotAForm,
    Notice::TooLarge,
    Notice::ForeignHost,
    Notice::NotANavigation,
    Notice::NotFound,
    Notice::MethodNotAllowed,
];

fn html(response: Response<Full<Bytes>>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn success(display: &str) -> OutcomePage {
    OutcomePage::LoggedIn { display: display.to_owned(), issuer_host: "login.example".to_owned() }
}

fn failure(text: &str) -> OutcomePage {
    OutcomePage::NotLoggedIn {
        reason: text.to_owned(),
        help: Some(text.to_owned()),
        provider_error: Some(text.to_owned()),
        provider_description: Some(text.to_owned()),
    }
}

fn every_page(text: &str) -> Vec<String> {
    let mut pages: Vec<String> = NOTICES.into_iter().map(|kind| html(notice(kind))).collect();
    let host = OutcomePage::LoggedIn { display: text.to_owned(), issuer_host: text.to_owned() };
    pages.extend([success(text), failure(text), host].map(|page| html(outcome(&page))));
    pages
}

#[test]
fn success_names_user_and_provider() {
    // L932
    let page = html(outcome(&success("ann@example.com")));
    for part in [
        "<html lang=\"en\">",
        "<title>Logged in</title>",
        "<main class=\"good\">",
        "<h1>Logged in</h1>",
        "<bdi>ann@example.com</bdi>",
        "<bdi>login.example</bdi>",
        "You can close this page and go back to your terminal.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("role=\"alert\""));
}

#[test]
fn failure_is_an_alert_with_the_providers_words() {
    // L932
    let page = html(outcome(&OutcomePage::NotLoggedIn {
        reason: "login.example says access was denied".to_owned(),
        help: Some("Ask for access.".to_owned()),
        provider_error: Some("access_denied".to_owned()),
        provider_description: Some("You are <b>not</b> in the group".to_owned()),
    }));
    for part in [
        "<title>Not logged in</title>",
        "role=\"alert\"",
        "<h1>Not logged in</h1>",
        "<bdi>login.example says access was denied</bdi>",
        "<bdi>Ask for access.</bdi>",
        "<code><bdi>access_denied</bdi></code>",
        "<bdi>You are &lt;b&gt;not&lt;/b&gt; in the group</bdi>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let bare = OutcomePage::NotLoggedIn {
        reason: "x".to_owned(),
        help: None,
        provider_error: None,
        provider_description: None,
    };
    assert!(!html(outcome(&bare)).contains("<dl>"));
}

#[test]
fn pages_have_one_main_one_heading_a_language_and_a_title() {
    // L933
    for page in every_page("text") {
        for (part, count) in [
            ("<html lang=\"en\">", 1),
            ("<main", 1),
            ("</main>", 1),
            ("<h1>", 1),
            ("<title>", 1),
            ("name=\"viewport\"", 1),
        ] {
            assert_eq!(page.matches(part).count(), count, "{part}: {page}");
        }
        let opened: Vec<&str> = ["main", "div", "p", "dl", "dt", "dd", "h1", "bdi", "strong", "code"]
            .into_iter()
            .filter(|tag| {
                let opened =
                    page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
                opened != page.matches(&format!("</{tag}>")).count()
            })
            .collect();
        assert!(opened.is_empty(), "{opened:?} not closed: {page}");
    }
}

#[test]
fn pages_stay_small_and_safe_whatever_the_text() {
    // L931, L933, L1303
    let hostile = [
        "<script>alert(1)</script>".repeat(1000),
        "</title></style></main><img src=x onerror=alert(1)>\"'`".repeat(100),
        "&".repeat(5000),
        "👋".repeat(5000),
        "\u{202e}\u{1b}]52;c;x\u{7}".repeat(500),
        String::new(),
    ];
    for text in hostile {
        for page in every_page(&text) {
            assert!(page.len() <= 4096, "{} bytes", page.len());
            for foreign in
                ["<script", "<img", "<link", "<iframe", "onerror=alert(1)>", "src=\"", "href=", "\u{1b}"]
            {
                assert!(!page.contains(foreign), "{foreign}: {page}");
            }
            assert_eq!(page.matches("<style>").count(), 1);
        }
    }
}

#[test]
fn every_response_has_the_headers() {
    // L931
    let mut responses: Vec<_> = NOTICES.into_iter().map(notice).collect();
    responses.extend([outcome(&success("a")), outcome(&failure("b")), redirect("/done/x")]);
    for response in responses {
        let value = |name: &str| response.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(value("content-type"), "text/html; charset=utf-8");
        assert_eq!(value("cache-control"), "no-store");
        assert_eq!(value("referrer-policy"), "no-referrer");
        assert_eq!(value("x-content-type-options"), "nosniff");
        assert_eq!(value("x-frame-options"), "DENY");
        assert_eq!(value("cross-origin-opener-policy"), "same-origin");
        assert_eq!(value("connection"), "close");
        let policy = value("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(
            policy.ends_with("'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"));
    }
}

#[test]
fn redirect_cannot_split_the_response() {
    assert_eq!(redirect("https://a.example/?x=1").status(), StatusCode::SEE_OTHER);
    let split = redirect("https://a.example/\r\nSet-Cookie: x=1");
    assert_eq!(split.status(), StatusCode::NOT_FOUND);
    assert!(!split.headers().contains_key("location") && !split.headers().contains_key("set-cookie"));
}

#[test]
fn browser_is_only_sent_to_http_addresses() {
    // L934
    let to = |url: &str| OutcomePage::Redirect {
        url: url.to_owned(),
        display: "ann".to_owned(),
        issuer_host: "login.example".to_owned(),
    };
    assert_eq!(to("https://docs.example/").redirect_url(), Some("https://docs.example/"));
    for url in
        ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "//evil.example", "/local", ""]
    {
        assert_eq!(to(url).redirect_url(), None, "{url}");
        assert!(html(outcome(&to(url))).contains("<title>Logged in</title>"));
    }
    assert_eq!(success("a").redirect_url(), None);
}
