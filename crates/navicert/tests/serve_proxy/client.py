"""PyPI `kubernetes` through the proxy: list, watch, log, and a command over a WebSocket."""

import sys

from kubernetes import client, config, watch
from kubernetes.stream import stream

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
print("pods", [pod.metadata.name for pod in core.list_namespaced_pod("default").items], flush=True)
events = watch.Watch()
for event in events.stream(core.list_namespaced_pod, "default", timeout_seconds=20):
    print("event", event["object"].metadata.name, flush=True)
    events.stop()
print("exec", stream(core.connect_get_namespaced_pod_exec, "web", "default", command=["date"], stdout=True, stderr=False).strip(), flush=True)
