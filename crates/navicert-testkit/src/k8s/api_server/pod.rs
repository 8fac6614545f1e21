//! A pod that kubectl can get, watch, read the log of, run commands in and forward a port to.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::ApiServer;
use crate::net::answer::Answer;
use crate::net::tunnel::Tunnel;
use crate::net::watch::Watch;
use crate::wait;

/// A pod on a test API server. It lies in the namespace `default`.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The events of a watch on pods.
    pub events: Watch,
    /// Its log stream.
    pub log: Watch,
    /// Commands that were run in it: each prints `hello from <name>`, and what it read.
    pub exec: Tunnel,
    /// Ports that were forwarded to it: each answers in capitals.
    pub port_forward: Tunnel,
}

impl Pod {
    /// Sends text twice through the port of `kubectl port-forward`, and expects it back in capitals.
    ///
    /// # Panics
    /// If it does not.
    pub fn answers_through(told: &str) {
        let mut words = told.split_whitespace();
        let address = words.find(|word| word.starts_with("127.0.0.1:")).expect("an address of loopback");
        for said in ["one", "two"] {
            let mut stream = TcpStream::connect(address).expect("a forwarded port");
            stream.set_read_timeout(Some(wait::LIMIT)).expect("a limit");
            stream.write_all(said.as_bytes()).expect("something said");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer and its end");
            assert_eq!(answer, said.to_uppercase());
        }
    }
}

impl ApiServer {
    /// Adds one pod, and the discovery documents kubectl needs to find it. These endpoints do not authenticate; check the
    /// recorded requests for credentials.
    pub fn add_pod(&self, name: &str, stdin: bool) -> Pod {
        let pod = Pod {
            name: name.to_owned(),
            events: Watch::new(),
            log: Watch::new(),
            exec: Tunnel::spdy_exec(stdin, format!("hello from {name}\n")),
            port_forward: Tunnel::spdy_port_forward(),
        };
        self.answer("/api", Answer::json(&json!({"kind": "APIVersions", "versions": ["v1"]})));
        self.answer(
            "/apis",
            Answer::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
        );
        self.answer("/api/v1", Answer::json(&resources()));
        let list = "/api/v1/namespaces/default/pods";
        let (object, events) = (object(name), pod.events.clone());
        let one = object.clone();
        self.answer_with(list, move |request| {
            if request.query().is_some_and(|query| query.contains("watch=true")) {
                return events.answer();
            }
            let metadata = json!({"resourceVersion": "1"});
            Answer::json(
                &json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": [one]}),
            )
        });
        self.answer(&format!("{list}/{name}"), Answer::json(&object));
        self.answer(&format!("{list}/{name}/log"), pod.log.answer().header("content-type", "text/plain"));
        let protocol = |tunnel: &Tunnel, name| tunnel.answer().header("x-stream-protocol-version", name);
        self.answer(&format!("{list}/{name}/exec"), protocol(&pod.exec, "v4.channel.k8s.io"));
        self.answer(&format!("{list}/{name}/portforward"), protocol(&pod.port_forward, "portforward.k8s.io"));
        pod
    }
}

fn resources() -> Value {
    let resource = |name: &str, verbs: &[&str]| json!({"name": name, "singularName": "", "namespaced": true, "kind": "Pod", "verbs": verbs, "shortNames": ["po"]});
    json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        resource("pods", &["get", "list", "watch", "create", "delete"]),
        resource("pods/log", &["get"]),
        resource("pods/exec", &["create", "get"]),
        resource("pods/portforward", &["create", "get"]),
    ]})
}

fn object(name: &str) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "uid": "1", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "main", "ready": true, "restartCount": 0, "image": "web:1", "imageID": "web@sha256:0"},
        ]},
    })
}
