//! A read-only gateway: requests that pass change nothing by the rules of kube-apiserver, written here a second time.

#![no_main]

use http::Request;
use libfuzzer_sys::fuzz_target;
use navicert_server::gateway::read_only;

fuzz_target!(|text: &str| {
    // Few inputs begin with a prefix of the API.
    for prefix in
        ["", "/", "/api/v1/", "/apis/", "/apis/authorization.k8s.io/v1/", "/api/v1/namespaces/a/pods/b/"]
    {
        for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"] {
            check(method, &format!("{prefix}{text}"));
        }
    }
});

fn check(method: &str, target: &str) {
    let Ok(request) = Request::builder().method(method).uri(target).body(()) else { return };
    let head = request.into_parts().0;
    if read_only::check(&head).is_err() {
        return;
    }
    let path = decoded(head.uri.path());
    assert!(!path.split('/').any(|part| part == "." || part == ".."), "dot segments in {path}");
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => &[],
    };
    let (verb, rest) = match rest {
        [verb @ ("proxy" | "watch"), rest @ ..] => (*verb, rest),
        rest => ("", rest),
    };
    let rest = match rest {
        ["namespaces", _, third, ..] if !["status", "finalize"].contains(third) => &rest[2..],
        rest => rest,
    };
    let subresource = rest.get(2).copied().unwrap_or_default();
    match method {
        "GET" | "HEAD" => {
            assert_ne!(verb, "proxy", "{path}");
            assert!(!["exec", "attach", "portforward", "proxy"].contains(&subresource), "{path}");
        }
        "OPTIONS" => {}
        "POST" => {
            let [resource] = rest else { panic!("POST {path}") };
            assert!(resource.ends_with("reviews") && *resource != "tokenreviews", "POST {path}");
            assert!(["authorization.k8s.io", "authentication.k8s.io"].contains(&parts[1]), "POST {path}");
        }
        _ => panic!("{method} {path}"),
    }
}

fn decoded(path: &str) -> String {
    let mut out = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escape = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (*first, escape.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &behind[2..];
            }
            (byte, _) => {
                out.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
