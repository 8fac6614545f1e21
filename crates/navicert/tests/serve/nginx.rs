//! Debian's nginx with `auth_request` at `/auth`: which requests pass, and with which user.

use std::net::TcpListener;

use navicert_testkit::cli::tools;
use navicert_testkit::{Answer, Ca, HttpClient, HttpServer, Program, wait};
use serde_json::json;

use super::Setup;

#[tokio::test]
async fn nginx_forwards_authenticated_requests_with_the_user_headers() {
    let Some(nginx) = tools::installed("nginx", "nginx") else { return };
    let setup = Setup::new();
    let serving = setup.serve(&["--plain-http", "--allow-any-caller"]).await;
    let behind = HttpServer::start_plain();
    behind.answer("/page", Answer::text("the page"));
    // Free a moment ago; nginx takes it at once.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dir = setup.dir.path().display();
    setup.write(
        "nginx.conf",
        &format!(
            "daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  upstream navicert {{ server {}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      auth_request /navicert;
      auth_request_set $user $upstream_http_x_remote_user;
      auth_request_set $groups $upstream_http_x_remote_groups;
      proxy_set_header X-Remote-User $user;
      proxy_set_header X-Remote-Groups $groups;
      proxy_set_header Authorization \"\";
      proxy_pass {};
    }}
    location = /navicert {{
      internal;
      proxy_pass http://navicert/auth;
      proxy_pass_request_body off;
      proxy_set_header Content-Length \"\";
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }}
  }}
}}
",
            serving.listen,
            behind.url().trim_end_matches('/'),
        ),
    );
    let nginx = Program::new(nginx)
        .arguments(["-e", "stderr", "-c"])
        .arguments([setup.path("nginx.conf")])
        .start_running()
        .unwrap();
    let listens = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    wait::within("nginx listens", listens).await;
    let client = HttpClient::trusting(&Ca::new("unused"));
    let ask = async |authorization: Option<String>| {
        let mut request =
            http::Request::get(format!("http://127.0.0.1:{port}/page")).header("x-remote-user", "root");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        client.send(request.body(bytes::Bytes::new()).unwrap()).await.unwrap()
    };
    for _ in 0..3 {
        let reply = ask(Some(format!("Bearer {}", setup.token(&json!({}))))).await;
        assert_eq!((reply.status.as_u16(), reply.text()), (200, "the page"), "{}", nginx.output());
    }
    for request in behind.requests() {
        assert_eq!(request.header("x-remote-user"), Some("oidc:ann"));
        assert_eq!(request.header("x-remote-groups"), Some("dev,ops"));
        assert_eq!(request.header("authorization"), None);
    }
    for refused in [None, Some("Bearer opaque"), Some("Bearer"), Some("Basic YTpi")] {
        assert_eq!(ask(refused.map(str::to_owned)).await.status, 401, "{refused:?}");
    }
    let expired = setup.token(&json!({"exp": 1_000}));
    assert_eq!(ask(Some(format!("Bearer {expired}"))).await.status, 401);
    assert_eq!(behind.requests().len(), 3, "only authenticated requests are forwarded");
    drop(serving);
    assert_eq!(
        ask(Some(format!("Bearer {}", setup.token(&json!({}))))).await.status,
        500,
        "without the webhook every request is rejected"
    );
    nginx.signal("QUIT");
}
