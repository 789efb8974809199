"""A crawl on a cluster of its own, counted: one JSON object in, one out.

It runs on Python 3.10 and newer.

In: {"workers" processes, "threads" in each, "jobs": [{"pages", and where they are not the usual:
"hosts" 8, "delay_s" 0, "size" of a batch 100, "cured" true, "kept" true, "connections" per host 8,
"requests_per_s" per host 0, "kill_after": part of the batches after which one worker is killed,
"faults": {page: fault of pages_server, or "kills" (who looks at it) or "nobody" (no such host)},
"folder": where the files go}]; and "failures": how many workers a batch may kill before it is
given up, by Dask's measure}.

Out: {"jobs": [{"done" of crawl.crawl, without the workers' words; "wall_s"; "rows", "twice" (rows
whose URL stands in another row), "right" (rows with exactly the page), "content": a digest of all
rows, "server": its counters, "cpu_s" of all workers and "engine_cpu_s" of scheduler and client
(both null where a worker was killed), "loads" of certificates in the workers, "peak_rss_kib" of the
largest worker}], "openssl", "start_s": until the workers were there}.

Two small crawls before them, stock and cured, are not counted: in them the workers import what
there is to import.
"""

import hashlib
import os
import resource
import shutil
import signal
import ssl
import sys
import tempfile
import time
from collections import Counter
from urllib.parse import parse_qs, urlsplit

HERE = os.path.dirname(os.path.abspath(__file__))

#: Pages, for each worker, of the crawls that are not counted, stock and cured. Each is a batch, so
#: that all get some. Their trust is a file of its own, whose context is nobody else's.
FIRST = 8

#: A port of the loopback at which nobody listens (discard).
NOBODY = "127.0.0.1:9"


def importable(folder):
    """Copy what workers import into one folder: the crawl, the check, and the cure."""
    root = HERE
    for _ in ("probes", "many", "cases", "casebook"):
        root = os.path.dirname(root)
    for name in ("crawl.py", "pages_server.py", "crawling.py"):
        shutil.copy(os.path.join(HERE, name), folder)
    shutil.copy(os.path.join(root, "shared_context.py"), folder)
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder


def is_the_page(url, body):
    """Raise WrongPage unless it is exactly the page of its URL. One page kills who looks at it."""
    import crawl
    import pages_server

    address = urlsplit(url)
    if parse_qs(address.query).get("fault") == ["kills"]:
        os.kill(os.getpid(), signal.SIGKILL)
    number = int(address.path.rpartition("/")[2])
    if body != pages_server.page(number):
        raise crawl.WrongPage(f"asked for page {number}: {body[:12]!r} and so on")


def counting():
    """Count loads of certificates from now on (in a worker)."""
    if not hasattr(ssl, "counted_loads"):
        ssl.counted_loads, load = [0], ssl.SSLContext.load_verify_locations

        def count_and_load(self, *args, **options):
            ssl.counted_loads[0] += 1
            return load(self, *args, **options)

        ssl.SSLContext.load_verify_locations = count_and_load


def usage():
    """Return what a worker has used so far (in it)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    loads = getattr(ssl, "counted_loads", [0])[0]
    return {"pid": os.getpid(), "cpu_s": used.ru_utime + used.ru_stime, "loads": loads,
            "rss": used.ru_maxrss}  # fmt: skip


def urls_of(job, hosts):
    """Yield the URLs of the pages, dealt out to the hosts."""
    for number in range(job["pages"]):
        host = hosts[number % len(hosts)]
        query = f"delay={job['delay_s']}" if job.get("delay_s") else ""
        fault = job.get("faults", {}).get(str(number))
        if fault == "nobody":
            host = NOBODY
        elif fault:
            query += f"&fault={fault}"
        yield f"https://{host}/page/{number}" + (f"?{query.lstrip('&')}" if query else "")


def content(folder):
    """Return of all files: rows, URLs that stand twice, rows with exactly their page, a digest."""
    import pages_server
    import pyarrow.parquet as parquet

    urls, right, parts = Counter(), 0, []
    for name in sorted(os.listdir(folder)):
        for row in parquet.read_table(os.path.join(folder, name)).to_pylist():
            address = urlsplit(row["url"])
            page = address.path + "?" + address.query
            urls[row["url"]] += 1
            number = int(address.path.rpartition("/")[2])
            good = row["status"] == "good" and row["body"] == pages_server.page(number)
            right += good
            parts.append((page, row["status"], hashlib.sha256(row["body"]).hexdigest()))
    digest = hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()[:24]
    rows = sum(urls.values())
    return {"rows": rows, "twice": rows - len(urls), "right": right, "content": digest}


def plan_of(job, bundle):
    """Return how a job is crawled."""
    import crawl

    patience = crawl.Patience(
        connect_s=2, silence_s=10, page_s=20, max_bytes=500_000, between_tries_s=0.02
    )
    return crawl.Plan(
        size=job.get("size", 100),
        check=is_the_page,
        manners=crawl.Manners(job.get("connections", 8), job.get("requests_per_s", 0)),
        patience=patience,
        one_client=crawl.OneClient(job.get("cured", True), job.get("kept", True), bundle),
    )


def run_job(client, job, server, bundle, folder):
    """Crawl one job, and return what came of it and what it took."""
    import crawl

    client.run(counting)
    start_usage, start_cpu_s = client.run(usage), time.process_time()
    server.reset()
    killed, batches = (
        [],
        sum(
            len(queue)
            for queue in crawl.batches_of(urls_of(job, server.hosts), job.get("size", 100)).values()
        ),
    )

    def kill_a_worker(progress):
        if (
            job.get("kill_after")
            and not killed
            and progress["batches"] >= job["kill_after"] * batches
        ):
            killed.append(next(iter(start_usage.values()))["pid"])
            os.kill(killed[0], signal.SIGKILL)

    start = time.perf_counter()
    result = crawl.crawl(
        client, urls_of(job, server.hosts), folder, plan_of(job, bundle), report=kill_a_worker
    )
    wall_s, engine_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu_s
    counters = server.counters()
    client.wait_for_workers(len(start_usage))  # one that was killed is being replaced
    end_usage = client.run(usage)
    same_workers = {usage["pid"] for usage in start_usage.values()} == {
        usage["pid"] for usage in end_usage.values()
    }
    growth = {
        name: sum(usage[name] for usage in end_usage.values())
        - sum(b[name] for b in start_usage.values())
        for name in ("cpu_s", "loads")
    }
    return {
        "done": result, "wall_s": wall_s, "server": counters, **content(folder),
        "cpu_s": growth["cpu_s"] if same_workers else None,
        "engine_cpu_s": engine_cpu_s if same_workers else None,
        "loads": growth["loads"] if same_workers else None,
        "peak_rss_kib": max(usage["rss"] for usage in end_usage.values()),
        "killed_a_worker": len(killed),
    }  # fmt: skip


def run(spec):
    """Start a cluster, and crawl all jobs."""
    import certifi
    import dask
    from distributed import Client, LocalCluster

    import pages_server

    hosts = max(job.get("hosts", 8) for job in spec["jobs"])
    with tempfile.TemporaryDirectory(prefix="casebook-") as scratch:
        importable(scratch)
        dask.config.set({"distributed.scheduler.allowed-failures": spec.get("failures", 3)})
        import crawling  # as the workers import it, so that what is sent is found there

        with pages_server.Pages(hosts) as server:
            bundle, first_bundle = (
                os.path.join(scratch, name) for name in ("bundle.pem", "first.pem")
            )
            with open(bundle, "w") as file:
                for part in (certifi.where(), server.ca_file):
                    with open(part) as certificates:
                        file.write(certificates.read())
            shutil.copy(bundle, first_bundle)
            start = time.perf_counter()
            with LocalCluster(
                n_workers=spec["workers"], threads_per_worker=spec["threads"], processes=True,
                host="127.0.0.1", dashboard_address=None, local_directory=scratch,
                memory_limit=0, silence_logs=50,
            ) as cluster, Client(cluster) as client:  # fmt: skip
                client.wait_for_workers(spec["workers"])
                start_s, answers = time.perf_counter() - start, []
                for cured in (False, True):
                    folder = os.path.join(scratch, "not-counted-%d" % cured)
                    os.mkdir(folder)
                    first = {"pages": FIRST * spec["workers"], "size": 1, "cured": cured}
                    crawling.run_job(client, first, server, first_bundle, folder)
                for number, job in enumerate(spec["jobs"]):
                    folder = job.get("folder") or os.path.join(scratch, "result-%d" % number)
                    os.makedirs(folder, exist_ok=True)
                    answers.append(crawling.run_job(client, job, server, bundle, folder))
    return {"jobs": answers, "start_s": start_s, "openssl": ssl.OPENSSL_VERSION}


if __name__ == "__main__":
    import json

    out = os.dup(1)  # what workers print is no answer
    os.dup2(2, 1)
    answer = run(json.load(sys.stdin))
    with os.fdopen(out, "w") as stream:
        json.dump(answer, stream)
