"""What the probe is compared with: the author's few lines and two clocks, on any Python."""

import grequests  # noqa: I001 - it patches, so it comes first

import json
import resource
import sys
import time

url, n, delay_s, ca_file = sys.argv[1:]
urls = [url + "/delay/" + delay_s + "?page=" + str(page) for page in range(int(n))]
clock = getattr(time, "perf_counter", time.time)
before, start = resource.getrusage(resource.RUSAGE_SELF), clock()
rs = [grequests.get(url, verify=ca_file) for url in urls]
responses = grequests.map(rs)
wall_s, after = clock() - start, resource.getrusage(resource.RUSAGE_SELF)
cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
ok = sum(response is not None and response.ok for response in responses)
print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "ok": ok}))
