//! Which addresses are bound, and what is said if none can be.

use std::net::{Ipv6Addr, TcpListener};

use super::*;

/// A port that another program has on this address alone. `None` without IPv6.
fn taken(ip: std::net::IpAddr) -> Option<TcpListener> {
    match TcpListener::bind((ip, 0)) {
        Ok(listener) => Some(listener),
        Err(error) if ip.is_ipv6() => {
            navicert_testkit::report::skipped("login on [::1]", &error.to_string());
            None
        }
        Err(error) => panic!("{ip}: {error}"),
    }
}

fn bound(receiver: &Receiver) -> Vec<String> {
    let port = receiver.port();
    receiver
        .sockets
        .addresses()
        .map(|address| address.to_string().replace(&port.to_string(), "PORT"))
        .collect()
}

#[tokio::test]
async fn localhost_is_bound_on_both_families() {
    // L711, L120
    if taken(Ipv6Addr::LOCALHOST.into()).is_none() {
        return;
    }
    for (address, redirect, expected) in [
        ("127.0.0.1:0", RedirectTarget::LOCALHOST, &["127.0.0.1:PORT", "[::1]:PORT"][..]),
        ("[::1]:0", RedirectTarget::LOCALHOST, &["[::1]:PORT", "127.0.0.1:PORT"]),
        ("localhost:0", RedirectTarget::LOOPBACK_ADDRESS, &["127.0.0.1:PORT", "[::1]:PORT"]),
        ("127.0.0.1:0", RedirectTarget::LOOPBACK_ADDRESS, &["127.0.0.1:PORT"]),
        ("[::1]:0", RedirectTarget::LOOPBACK_ADDRESS, &["[::1]:PORT"]),
    ] {
        let receiver = Receiver::bind(&settings(&[address], redirect.clone())).unwrap();
        assert_eq!(bound(&receiver), expected, "{address} {redirect:?}");
        assert!(receiver.exposed_addresses().is_empty());
        let port = receiver.port();
        let uri = match (redirect == RedirectTarget::LOCALHOST, address) {
            (true, _) => format!("http://localhost:{port}"),
            (false, "[::1]:0") => format!("http://[::1]:{port}/callback"),
            (false, _) => format!("http://127.0.0.1:{port}/callback"),
        };
        assert_eq!(receiver.redirect_uri(), uri);
        assert!(receiver.start_url().starts_with(uri.strip_suffix("/callback").unwrap_or(&uri)));
    }
}

#[tokio::test]
async fn both_families_finish_a_login() {
    // L711: whichever the browser tries for `localhost`.
    for family in ["127.0.0.1", "[::1]"] {
        if family == "[::1]" && taken(Ipv6Addr::LOCALHOST.into()).is_none() {
            return;
        }
        let receiver = Receiver::bind(&settings(&["127.0.0.1:0"], RedirectTarget::LOCALHOST)).unwrap();
        let port = receiver.port();
        let site = Site { address: format!("{family}:{port}").parse().unwrap(), ..Site::of(&receiver) };
        let host = format!("localhost:{port}");
        let (outcome, ()) = serve_while(receiver, async {
            let callback = CALLBACK.replace("/callback", "/");
            let started = site.get_with(&site.start_path, &[("Host", &host)]).await;
            assert_eq!(started.location(), AUTHORIZATION_URL);
            assert!(started.headers("set-cookie")[1].ends_with("; Path=/"));
            let answered = site.get_with(&callback, &[("Host", &host)]).await;
            assert_eq!(answered.status, 303, "{answered:?}");
            let page = site.get_with(answered.location(), &[("Host", &host)]).await;
            assert!(page.body.contains("<title>Logged in</title>"));
        })
        .await;
        assert_eq!(outcome, Ok("abc".to_owned()), "{family}");
    }
}

#[tokio::test]
async fn port_that_is_taken_on_one_family_is_not_used() {
    // L711, L1309: the request of the browser would go to the other program.
    for ip in ["127.0.0.1".parse().unwrap(), Ipv6Addr::LOCALHOST.into()] {
        let Some(other) = taken(ip) else { return };
        let port = other.local_addr().unwrap().port();
        let first = format!("127.0.0.1:{port}");
        let receiver =
            Receiver::bind(&settings(&[&first, "127.0.0.1:0"], RedirectTarget::LOCALHOST)).unwrap();
        assert_ne!(receiver.port(), port, "the next address is used");
        let alone = Receiver::bind(&settings(&[&first], RedirectTarget::LOCALHOST));
        assert!(matches!(alone, Err(BindError::PortTaken(_))), "{alone:?}");
        if ip.is_ipv6() {
            let receiver = Receiver::bind(&settings(&[&first], RedirectTarget::LOOPBACK_ADDRESS)).unwrap();
            assert_eq!(receiver.port(), port, "the address itself is free");
        }
    }
}

#[tokio::test]
async fn taken_ports_are_named_with_their_program() {
    // L715, L1206
    let (one, other) =
        (taken("127.0.0.1".parse().unwrap()).unwrap(), taken("127.0.0.1".parse().unwrap()).unwrap());
    let addresses = [&one, &other].map(|listener| listener.local_addr().unwrap().to_string());
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let error = Receiver::bind(&settings(&addresses, RedirectTarget::LOCALHOST)).unwrap_err();
    let pid = std::process::id();
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let owner = format!("in use by {}, pid {pid}", name.trim_end());
    let expected = format!("cannot listen on {} ({owner}) nor {} ({owner})", addresses[0], addresses[1]);
    if cfg!(target_os = "linux") {
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn second_receiver_cannot_take_the_port_over() {
    // L1309, L712
    let receiver = Receiver::bind(&settings(&["127.0.0.1:0"], RedirectTarget::LOCALHOST)).unwrap();
    let same = format!("127.0.0.1:{}", receiver.port());
    for redirect in [RedirectTarget::LOCALHOST, RedirectTarget::LOOPBACK_ADDRESS] {
        let second = Receiver::bind(&settings(&[&same], redirect));
        assert!(matches!(second, Err(BindError::PortTaken(_))), "{second:?}");
    }
    for address in [same, format!("[::1]:{}", receiver.port()), format!("0.0.0.0:{}", receiver.port())] {
        let is_bound = receiver.sockets.addresses().any(|own| own.is_ipv6());
        if !address.starts_with('[') || is_bound {
            assert!(TcpListener::bind(&*address).is_err(), "{address}");
        }
    }
}

#[tokio::test]
async fn other_machines_are_served_only_on_request() {
    // L712
    let free = taken("127.0.0.1".parse().unwrap()).unwrap().local_addr().unwrap().port();
    let any = Receiver::bind(&settings(&[&format!("0.0.0.0:{free}")], RedirectTarget::LOCALHOST)).unwrap();
    assert!(!any.exposed_addresses().is_empty());
    assert_eq!(any.redirect_uri(), format!("http://localhost:{free}"));
    for address in ["0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0"] {
        let refused = Receiver::bind(&settings(&[address], RedirectTarget::LOCALHOST));
        assert!(matches!(refused, Err(BindError::NotLoopback(_))), "{address}: {refused:?}");
    }
    let foreign = Receiver::bind(&settings(&["192.0.2.1:8000"], RedirectTarget::LOCALHOST));
    assert!(matches!(foreign, Err(BindError::PortTaken(_))), "{foreign:?}");
}

#[tokio::test]
async fn explicit_redirect_url_is_sent_literally() {
    // L714
    let explicit = |text| RedirectTarget::explicit(text).unwrap();
    let refused = Receiver::bind(&settings(&["127.0.0.1:0"], explicit("http://localhost:9000/cb")));
    assert!(matches!(refused, Err(BindError::FreePortWithFixedRedirect { .. })), "{refused:?}");
    let free = taken("127.0.0.1".parse().unwrap()).unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{free}");
    // In a container, or behind `ssh -L`: the browser's port is another one.
    let receiver = Receiver::bind(&settings(&[&address], explicit("http://LocalHost:9000/cb?a=b"))).unwrap();
    assert_eq!(receiver.redirect_uri(), "http://LocalHost:9000/cb?a=b");
    assert!(receiver.start_url().starts_with("http://localhost:9000/start/"), "{}", receiver.start_url());
    let site = Site::of(&receiver);
    let (outcome, ()) = serve_while(receiver, async {
        let callback = CALLBACK.replace("/callback?", "/cb?a=b&");
        assert_eq!(site.get_with(CALLBACK, &[("Host", "localhost:9000")]).await.status, 404);
        let answered = site.get_with(&callback, &[("Host", "localhost:9000")]).await;
        assert_eq!(answered.status, 303);
        assert_eq!(site.get(answered.location()).await.status, 200);
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
    // A name of another machine, which leads here: the start link is a local one.
    let receiver = Receiver::bind(&settings(&[&address], explicit("https://login.corp.example/cb"))).unwrap();
    assert!(receiver.start_url().starts_with(&format!("http://{address}/start/")));
}

#[test]
fn listen_addresses_are_parsed() {
    for (text, shown) in [
        ("127.0.0.1:8000", "127.0.0.1:8000"),
        ("[::1]:0", "[::1]:0"),
        ("localhost:18000", "localhost:18000"),
        ("LOCALHOST:1", "localhost:1"),
        (":8000", "0.0.0.0:8000"),
        ("[::]:8000", "0.0.0.0:8000"),
        ("10.0.0.1:65535", "10.0.0.1:65535"),
    ] {
        assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), shown, "{text}");
    }
    for text in [
        "",
        "8000",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "127.0.0.1:+1",
        "::1:8000",
        "[::1]",
        "[127.0.0.1]:80",
        "example.com:80",
        "http://localhost:80",
        "127.1:80",
    ] {
        assert!(text.parse::<ListenAddress>().is_err(), "{text}");
    }
    assert_eq!(ListenAddress::FREE_PORT.to_string(), "127.0.0.1:0");
    assert_eq!(ListenAddress::loopback(8000), "127.0.0.1:8000".parse().unwrap());
    assert_eq!(ListenAddress::localhost(8000), "localhost:8000".parse().unwrap());
}
