"""gevent's detector inside real stacks: it names the wait that blocks, and is silent otherwise."""

import pytest

from casebook.cases.fetching import detector
from casebook.errors import UsageError

SAID = """\
================================================================================

2026-11-20T11:38:21Z : Greenlet <Greenlet at 0x7f: <bound method AsyncRequest.send>> \
appears to be blocked
    Reported by <gevent._gevent_c_tracer.GreenletTracer object at 0x7f>
Blocked Stack (for thread id 0x7f):
  File "/env/lib/python3.13/site-packages/grequests.py", line 74, in send
    self.response = self.session.request(self.method,
  File "/usr/lib/python3.13/http/client.py", line 325, in begin
    version, status, reason = self._read_status()
  File "/env/lib/python3.13/site-packages/urllib3/util/wait.py", line 77, in do_poll
    return poll_obj.poll(t)

Info:
********************************************************************************
* Threads
********************************************************************************
Thread 0x7f (None)

  File "/env/lib/python3.13/site-packages/gevent/threadpool.py", line 216, in run
    task = task_queue_get(task_queue_cookie, idle_task_timeout)
"""


def test_an_injected_stack_is_reported_in_the_wait_that_blocks():
    watch = detector.watch("stage-2-injected-today", n=2, delay_s=0.6, max_blocking_s=0.2)
    assert watch.blocked_in("urllib3/util/wait.py") >= 2
    assert "contrib/pyopenssl.py" in watch.report(1)
    assert watch.frame["blocked_in"].str.startswith("urllib3/util/wait.py:").any()
    assert not any(line.startswith("/") for line in watch.report(1).splitlines())


def test_a_plain_stack_is_not_reported():
    watch = detector.watch("stage-1-today", n=2, delay_s=0.6, max_blocking_s=0.2)
    assert watch.blocked_in("urllib3/util/wait.py") == 0


def test_only_the_stack_of_the_blocked_greenlet_is_taken():
    stack = [
        ("grequests.py", 74, "send"),
        ("http/client.py", 325, "begin"),
        ("urllib3/util/wait.py", 77, "do_poll"),
    ]
    assert detector.reports_in(SAID * 2) == [stack, stack]
    assert detector.reports_in("MonitorWarning: Unable to monitor memory usage.") == []


def test_a_threshold_out_of_range_and_a_missing_report_are_refused():
    with pytest.raises(UsageError, match="max_blocking_s is 0"):
        detector.watch("stage-1-today", max_blocking_s=0)
    empty = detector.Watch("stage-1-today", 1, [], "2026-11-20T11:38:21Z")
    with pytest.raises(UsageError, match="no report 1"):
        empty.report(1)
    assert empty.frame.empty and "blocked_in" in empty.frame
