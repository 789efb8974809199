"""A web application under gunicorn's gevent worker, which fetches a page for each request.

Run, it starts gunicorn, asks it for all pages at once, and ends it; {"doctor": path} in the request
has the doctor examine the worker from inside first, and its report comes back as "report". It is
also gunicorn's application and its configuration. PATIENT=injected: with pyOpenSSL in urllib3;
PATIENT=preloaded: gunicorn imports requests before its worker patches, as its --preload does.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from http.client import HTTPConnection
from multiprocessing.pool import ThreadPool

HERE = os.path.dirname(os.path.abspath(__file__))


def application(environ, start_response):
    import requests

    url = os.environ["LAB"] + "?".join((environ["PATH_INFO"], environ["QUERY_STRING"]))
    body = requests.get(url, verify=os.environ["LAB_CA"]).content
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body]


def on_starting(server):
    """Import early if asked to; gunicorn calls this before it has a worker."""
    if os.environ.get("PATIENT") == "preloaded":
        import requests  # noqa: F401


def post_worker_init(worker):
    """Prepare the worker; gunicorn calls this in it, patched and with the application loaded."""
    import requests  # noqa: F401

    if os.environ.get("PATIENT") == "injected":
        from urllib3.contrib import pyopenssl

        pyopenssl.inject_into_urllib3()
    if os.environ["DOCTOR"]:
        sys.path.insert(0, os.path.dirname(os.environ["DOCTOR"]))
        import doctor

        report = doctor.inside()
        with open(os.environ["REPORT"], "w") as file:
            json.dump(report, file)


def get(url):
    host, _, path = url.partition("/")
    connection = HTTPConnection(host, timeout=60)
    connection.request("GET", "/" + path)
    return connection.getresponse().read()


def fetch_pages(urls, _):
    with ThreadPool(len(urls)) as pool:
        return pool.map(get, urls)


def main():
    spec = json.load(sys.stdin)
    free = socket.create_server(("127.0.0.1", 0))  # gunicorn takes it over
    place = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        environ = dict(
            os.environ, LAB=spec["url"], LAB_CA=spec["ca_file"], REPORT=report,
            DOCTOR=spec.get("doctor") or "", PYTHONDONTWRITEBYTECODE="1",
        )  # fmt: skip
        command = [sys.executable, "-m", "gunicorn", "--worker-class", "gevent", "--workers", "1"]
        command += ["--bind", f"fd://{free.fileno()}", "--config", os.path.abspath(__file__)]
        command += ["--worker-tmp-dir", folder, "--timeout", "120", "--chdir", HERE]
        command += ["with_gunicorn:application"]
        serving = subprocess.Popen(command, env=environ, pass_fds=[free.fileno()])
        try:
            get(f"{place}/get")  # answered once the worker is ready
            if spec.get("doctor"):
                with open(report) as file:
                    json.dump({"report": json.load(file)}, sys.stdout)
            else:
                fetch_all(fetch_pages, dict(spec, url=place))
        finally:
            serving.terminate()
            serving.wait()


if __name__ == "__main__":
    from at_once import fetch_all

    main()
