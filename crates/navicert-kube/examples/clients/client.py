"""One client of the comparison: PyPI `kubernetes`. Reads a line per task (how many requests at once) and answers with a line."""

import sys
from concurrent.futures import ThreadPoolExecutor

from kubernetes import client, config


def ask(api):
    try:
        api.get_code()
        return "good"
    except Exception:
        return "bad"


def main():
    try:
        config.load_kube_config(sys.argv[1])
        api = client.VersionApi()
    except Exception:
        api = None
    with ThreadPoolExecutor(32) as pool:
        for line in sys.stdin:
            outcomes = [pool.submit(ask, api) for _ in range(int(line))] if api else []
            print(" ".join(outcome.result() for outcome in outcomes), flush=True)


main()
