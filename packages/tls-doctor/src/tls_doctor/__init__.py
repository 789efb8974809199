"""Why is HTTPS slow in this program? Ask the program itself.

    python doctor.py run [options] -- your program and its arguments
    python doctor.py [options] -- module-or-script
    python doctor.py attach PID [--seconds 5] [--json]

Run it with the Python that runs your program. `run` starts the program as you would and counts what
it does: report.py, -m package, a console script, an archive (.pyz), package.module:function.

    python doctor.py run -- report.py --month 3
    python doctor.py run -- -m myproject.jobs

It looks for these illnesses: a TLS read that blocks the event loop (of gevent and eventlet, tried
out when the program has ended; of asyncio and trio, counted; of all of them, heard by a heartbeat
through the run, whatever waits: psycopg2, say, with TLS of its own); certificates that are loaded
again and again, where once is enough, or while an asyncio loop waits; handshakes of threads that
wait for each other; contexts that are kept by the dozen; and, with --url alone, HTTP/1.1 where
HTTP/2 was meant.

Without `run` the program is only imported: its `if __name__ == "__main__":` is not done. Then the
event loop is tried out all the same, and of the loads there is advice and no verdict. In a worker
that patches when it starts (gunicorn), call `doctor.inside()` there.

options:
  --json             one JSON object instead of the text, and nothing else on standard output
  --again            a run's program runs a second time, with what can be changed from outside, and
                     what was promised is laid beside what came out. (It sends again what it sends.)
  --github           annotations for GitHub's pages, beside the text
  --fail-on WHAT     what exits with 1: blocked, loads, loop-loads, handshakes, contexts, or several
                     with a comma (default: all)
  --share PERCENT    repeated loads above this share of the program's CPU are an illness (default
                     5). Its imports are part of that CPU; compiling its modules, which only a first
                     run does, is not (on Python 2.7 it is). Near the limit two runs may come out
                     otherwise, and the report says so
  --url URL          also ask this URL (HEAD, at most 20 requests, each announced): which HTTP?
  --patience N       end after N seconds (default: 90; a run takes what it takes)
  --seconds N        how long `attach` looks (default 5): with what Python itself has from 3.14 on,
                     where the process runs the same Python as the doctor, else with py-spy
  --schema           the JSON schema of what --json prints
  --version

exit status:
  0  nothing found (there may be advice)
  1  one of the illnesses was found
  2  it could not tell, and says why: nothing was seen that it knows, or the program crashed
  130 (Ctrl-C), 143 or 129: a run was ended by this signal; what was counted so far is told

a report, without its first lines:

    2. What do certificate loads cost?  REPEATED
      10 loads for 10 connections; 1 needed. The others cost 162 ms of CPU, 37.2 % of the
        program's 435 ms. 10 handshakes, at most 1 under way at once, in 1 process; 10
        contexts made.
      requests: 10 loads, 10 connections, 10 contexts, at report.py:2

    What to change
      1. requests loaded 10 times for 10 connections, from report.py:2. requests.get makes a
         Session for each call; one that is kept, for many requests to few hosts, keeps its
         connections, and loads once for each.
         add:     session = requests.Session()
         saves:   tried here, against the doctor's own server: of 10 requests, 10 loads
                  and 212 ms of CPU; with it 1 load and 29 ms

    exit status 1

Nothing is sent but what --url asks for and what your program sends: the checks use a TLS server of
the doctor's own on the loopback interface, which ends with it. The program runs once, and
with --again twice. Nothing stays on disk. One file, the standard library only, Python 2.7 to 3.14.
"""

from .advice import CHAPTERS
from .basis import VERSION
from .command_line import start
from .examination import inside
from .probes import counting
from .report import text_of
from .wording import several, times

__all__ = ["CHAPTERS", "VERSION", "counting", "inside", "several", "start", "text_of", "times"]
