"""The report."""

from __future__ import division, print_function

import re

from .advice import injected_by
from .basis import (
    BLOCKED,
    CANNOT_TELL,
    DOES_NOT_APPLY,
    FREE,
    HELD_UP,
    NOT_IN_A_ROW,
    ONCE,
    ONE_AT_A_TIME,
    ONE_FOR_EACH,
    REPEATED,
    UNSEEN,
)
from .rerun import again_lines
from .verdicts import limit_near
from .wording import several, span, times, wrapped

ILL = (BLOCKED, REPEATED, HELD_UP, ONE_AT_A_TIME, ONE_FOR_EACH)
WELL = (FREE, ONCE, NOT_IN_A_ROW)
#: From this many contexts that a collection alone has freed, the report says so.
DROPPED_FROM = 5
#: What is asked of a run beside the first two.
QUESTIONS = {
    "loads on the loop": "Do certificate loads hold up the event loop?",
    "handshakes": "Do handshakes wait for each other?",
    "contexts": "How many contexts are alive at once?",
}


def further_questions(report):
    """Return those of QUESTIONS that apply."""
    verdicts = report["verdicts"]
    return [
        question
        for question in QUESTIONS
        if verdicts.get(question, DOES_NOT_APPLY) != DOES_NOT_APPLY
    ]


def other_lines(about, counts):
    """Yield the lines on one of QUESTIONS."""
    on_loop, queue = counts["on_loop"], counts["queue"]
    if about == "loads on the loop":
        text = "%s under a running event loop, %.0f ms of CPU; after %d of them others waited"
        yield wrapped(text % (several(on_loop["loads"], "load"), on_loop["ms"], on_loop["waiting"]))
    elif about == "contexts":
        text = "at most %d with the same certificates; memory grew by %.1f MiB during %s"
        yield wrapped(
            text % (counts["alive"], counts["context_mib"], several(counts["loads"], "load"))
        )
    else:
        yield wrapped("at most %d under way at once" % counts["peak"])
        if queue:
            text = "of one context (sockets of %(by)s): at most %(wanted)d wanted at once, "
            text += "%(peak)d under way at once; they waited %(behind_s).2f s for each other"
            yield wrapped(text % queue)


#: What a program raises whose packages are in another Python, and what to do then.
LACKS = ("ModuleNotFoundError", "ImportError: No module named")
NAME_PYTHON = (
    " (Does your program have a Python of its own, in a venv, say? Then name that one: tls-doctor "
    "run -- path/to/venv/bin/python ...)"
)


def text_of(report, colour):
    """Return the report as people read it."""

    def bold(text, code=1):
        return "\033[%sm%s\033[0m" % (code, text) if colour else text

    def question(text, about):
        verdict = report["verdicts"][about]
        code = 31 if verdict in ILL else 32 if verdict in WELL else 33
        return "%s  %s" % (bold(text), bold(verdict.upper(), "1;%d" % code))

    program = report["program"] or "nothing (no program was named)"
    if report["program"] and "imported_s" in report:
        program += ", imported in %.1f s" % report["imported_s"]
    manner = "run" if "counts" in report else "examined"
    examined = (report["python"], report["openssl"]["ssl"], manner, program)
    providers = ["  %(name)-24s %(by)s" % row for row in report["provides"]]
    injections = [wrapped(injected_by(injection) + ".") for injection in report["injections"]]
    raised, early = report.get("ended", {}).get("raised"), []
    if raised and not report["counts"]["handshakes"]:
        text = "It ended before its first connection: %s. Fix that first."
        text = text % raised
        if raised.startswith(LACKS):  # as in an environment that pipx or uvx made
            text += NAME_PYTHON
        early = [bold(wrapped(text, "")), ""]
    verdicts = set(report["verdicts"].values())
    untold = report["exit_status"] == 2 or verdicts & {CANNOT_TELL, UNSEEN}
    to_change = "What to change cannot be told." if untold else "Nothing to change."
    to_change = "What to change" if report["advice"] else to_change
    comparisons = [report["again"]] if "again" in report else []
    other_parts = [
        (
            question("%d. %s" % (number, QUESTIONS[about]), about),
            other_lines(about, report["counts"]),
        )
        for number, about in enumerate(further_questions(report), 3)
    ]
    parts = (
        [
            ("Python %s, %s\n%s: %s\n" % examined, early + providers + injections),
            (
                question("1. Does a TLS read block the event loop?", "event loop"),
                loop_lines(report),
            ),
            (
                question("2. What do certificate loads cost?", "certificate loads"),
                load_lines(report),
            ),
        ]
        + other_parts
        + [
            (bold("%d. Which HTTP?" % (3 + len(other_parts))), http_lines(report["http"])),
            (bold(to_change), advice_lines(report["advice"])),
        ]
        + [(bold("Again, with the change"), again_lines(comparison)) for comparison in comparisons]
        + [
            ("exit status %d" % report["exit_status"], []),
        ]
    )
    return "\n\n".join("\n".join([head] + list(lines)) for head, lines in parts) + "\n"


NO_LOOP = (
    "There is neither gevent nor eventlet in this process: a blocking read stops its own thread "
    "only. (Under asyncio a client without await that is called on the loop blocks it.) What can "
    "apply are the loads, below."
)
TRIAL = (
    "%(requests)d requests of %(delay_s).1f s in %(wall_s).2f s (effective concurrency "
    "%(effective_concurrency).2f), at most %(peak_in_flight)d at once; the heartbeat missed "
    "%(longest_gap_s).2f s"
)


def loop_lines(report):
    """Yield the lines on the event loop."""
    counts = report.get("counts")
    lines = list(work_lines(report)) if counts else [no_loop_line(report)]
    lines += list(trial_lines(report)) + [untried_line(report)]
    lines += list(silence_lines(counts)) if counts else [unwatched_line(report)]
    return [line for line in lines + [own_tls_line(report)] if line is not None]


def work_lines(report):
    """Return what a loop did while the program ran."""
    counts = report["counts"]
    if counts["under_loop"] or counts["blocked"]["times"]:
        return asyncio_lines(counts)
    if counts["stood"]["waits"]:
        return greenlet_lines(counts["stood"])
    if counts["heartbeats"]:
        return []  # told below
    return [no_loop_line(report)]


def no_loop_line(report):
    """Return that there is no loop of greenlets; None if there is one, or one that awaits."""
    if report["loop"] is not None or report.get("unwatched"):
        return None
    text = NO_LOOP
    if not report["program"]:
        text += " To see your program, name what does its imports: doctor.py -- module"
        if report["loops_installed"]:
            text += " (%s is installed here)" % " and ".join(report["loops_installed"])
    return wrapped(text)


def trial_lines(report):
    """Yield what came of the trials of clients and of cures."""
    for row in report["clients"]:
        reason = " (%s)" % row["error"] if row["error"] else ""
        yield wrapped("%s: %s%s" % (row["client"], row["verdict"], reason))
        if row["verdict"] == DOES_NOT_APPLY:
            continue
        for scheme in ("https", "http"):
            for trial in (row[scheme] or {}).get("trials", []):
                yield wrapped(TRIAL % trial, "    %-6s" % scheme)
    for row in report["cures"]:
        if row["wall_s"] is not None:
            yield wrapped("tried here: %(cure)s, %(verdict)s in %(wall_s).2f s" % row)


def untried_line(report):
    """Return why a loop was not tried, or is no matter; None if it was."""
    counts = report.get("counts")
    if report.get("untried"):
        text = "%s was loaded, and could not be tried: %s. In a worker, call doctor.inside()."
        return wrapped(text % (report["loop"]["name"], report["untried"]))
    if report["loop"] and report["verdicts"]["event loop"] == DOES_NOT_APPLY:
        text = "%s has patched nothing here." % report["loop"]["name"]
        if counts and counts["connections"]:
            text += " No greenlet waited for a client: the connections were made in threads."
        return wrapped(text)
    return None


def unwatched_line(report):
    """Return which loops nobody has watched; None if there is none."""
    if not report.get("unwatched"):
        return None
    text = (
        "%s: every client that does not await blocks its loop, and nobody has watched whether one "
        "does. A run does: doctor.py run -- ..."
    )
    return wrapped(text % " and ".join(report["unwatched"]))


def own_tls_line(report):
    """Return what brings TLS of its own; None if nothing does."""
    counts = report.get("counts")
    names = ", ".join(counts["own_tls"] if counts else report["own_tls"])
    if not names:
        return None
    text = "%s: imported, and brings TLS of its own: its loads and handshakes are not counted. "
    if counts and counts["heartbeats"]:
        text += "A loop that it keeps waiting is seen by the heartbeat."
    elif not counts and not report.get("unwatched"):
        text += "Whether it blocks the loop is told by a run alone: doctor.py run -- ..."
    return wrapped(text % names)


def silence_lines(counts):
    """Yield what the heartbeat saw of a loop, whatever kept it."""
    silent = counts["silent"]
    for loop in counts["heartbeats"]:
        if loop != silent["by"]:
            yield wrapped(
                "%s: its heartbeat was looked at through the run, and never stopped" % loop
            )
    named_places = [place for place, _ in counts["blocked"]["at"]]
    if silent["times"] and not all(place in named_places for place, _ in silent["at"]):
        text = "%s: its heartbeat stopped %s while its thread waited, %.2f s in all, and others "
        text += "waited for %.2f s of that"
        numbers = silent["by"], times(silent["times"]), silent["s"], silent["waiting_s"]
        yield wrapped(text % numbers)
        for place, number in silent["at"][:5]:
            yield wrapped("%s, %s" % (place, times(number)), "    ")


def asyncio_lines(counts):
    """Yield what kept a loop of asyncio or trio waiting."""
    blocked = counts["blocked"]
    loop, connections = blocked["by"], several(counts["under_loop"], "connection")
    if not blocked["times"] and len(counts["heartbeats"]) == 1:
        loop = counts["heartbeats"][0]
    yield wrapped("%s: %s made under a running loop" % (loop, connections))
    if blocked["times"]:
        text = loop + ": its loop was blocked %s by a client that does not await, for %.2f s, and "
        text += "others waited for %.2f s of that"
        yield wrapped(text % (times(blocked["times"]), blocked["s"], blocked["waiting_s"]))
        for place, number in blocked["at"][:5]:
            yield wrapped("%s, %s" % (place, times(number)), "    ")


def greenlet_lines(stalls):
    """Yield what kept the loop of a program's greenlets waiting while the program ran."""
    waits = several(stalls["waits"], "wait")
    if not stalls["times"]:
        yield wrapped("While the program ran, its loop went on through %s for replies." % waits)
        return
    clients = " and ".join(name or "a client" for name, _ in stalls["clients"])
    text = "While the program ran, its loop stood still through %d of %s for replies, %.2f s in "
    text += "all, in %s"
    yield wrapped(text % (stalls["times"], waits, stalls["s"], clients))
    for place, number in stalls["at"][:5]:
        yield wrapped("%s, %s" % (place, times(number)), "    ")


def count_lines(report):
    """Yield what a run counted, as lines."""
    counts = report["counts"]
    text = trouble_of_connections(report)
    if text:
        yield wrapped(text)
    yield wrapped(sentence_of_counts(counts))
    if counts["dropped"] or counts["collected"] >= DROPPED_FROM:
        text = "To count what is in use, the doctor ran Python's garbage collector: that alone "
        text += "freed %s and closed %s, of clients that the program had dropped."
        numbers = several(counts["collected"], "context"), counts["dropped"]
        yield wrapped(text % (numbers[0], several(numbers[1], "open connection")))
    limit = limit_near(counts, report["share_stated"])
    if limit is not None:
        text = "That is about at the limit of %g %%: another run may come out otherwise."
        text += " --share moves it." if limit == report["share_stated"] else ""
        yield wrapped(text % limit)
    for row in counts["clients"]:
        yield wrapped(sentence_of_client(row))
    ending = report["ended"]
    if ending["raised"] or ending["why"] or ending["status"]:
        killed = ending["status"] is not None and ending["status"] < 0
        status = "killed by signal %d" if killed else "exit status %d"
        reason = ending["raised"] or ending["why"] or status % abs(ending["status"])
        text = "The program ended early or badly (%s): only what came before is counted."
        yield wrapped(text % reason)
    if counts["left"]:
        text = "%s that the program has started ran on when it had ended: what is done there from "
        text += (
            "then on is not counted. To count it, have the program stay in the foreground (many "
        )
        text += "daemons have an option for that), or name what is started behind `run --`."
        yield wrapped(text % several(counts["left"], "process").replace("processs", "processes"))
    for reason in counts["uncounted"] + counts["unprobed"]:
        yield wrapped("Not all was counted: %s" % reason)


def trouble_of_connections(report):
    """Return what kept connections from being made or counted, in words; None if nothing."""
    counts = report["counts"]
    reasons = ["%s (%s)" % (failure, times(number)) for failure, number in counts["failures"][:3]]
    if counts["failures"] and not counts["handshakes"]:
        text = "No connection came through, so nothing can be told of loads. What they ended with: "
        return text + ", ".join(reasons)
    if counts["connections"] == 0 and counts["loads"]:
        return (
            "No TLS connection was made through ssl or pyOpenSSL: what was loaded served none. "
            "(Plain HTTP needs no context.)"
        )
    if counts["connections"] == 0:
        return (
            "No TLS connection was made through ssl or pyOpenSSL, so there is nothing to tell. The "
            "doctor knows %s; what brings its own TLS (pycurl, grpc) it cannot see."
        ) % ", ".join(report["known_to_the_doctor"])
    if counts["failed"] and counts["handshakes"]:
        numbers = counts["failed"], several(counts["connections"], "connection")
        text = "%d of %s did not come through: " % numbers
        return text + (", ".join(reasons) or "nobody tells why")
    if counts["handshakes"] == 0:
        return "None of %s came through." % several(counts["connections"], "handshake")
    return None


def sentence_of_counts(counts):
    """Return the counts of a run, in words."""
    numbers = several(counts["loads"], "load"), several(counts["connections"], "connection")
    raced = counts.get("raced", 0)
    needed = min(counts["needed"] - raced, counts["connections"])
    text = "%s for %s; %d needed. " % (numbers + (needed,))
    if raced:
        text += "(%d more: threads wanted one context at once, and each loaded it. " % raced
        text += "That happens once, unless a lock is held while it is made.) "
    if counts["loads"] > counts["needed"]:
        text += "The others cost %.0f ms of CPU, %.1f %% of the program's %.0f ms. " % (
            counts["spare_ms"], counts["share"], counts["cpu_ms"])  # fmt: skip
        if counts["compiled_ms"] >= 0.5:
            text += "(Compiling its modules, which Python does once, took %.0f ms more.) " % (
                counts["compiled_ms"])  # fmt: skip
    text += "%s, at most %d under way and %s open at once, in %s; %s made." % (
        several(counts["handshakes"], "handshake"), counts["peak"],
        several(counts["open"], "connection"),
        several(counts["processes"], "process").replace("processs", "processes"),
        several(counts["contexts"], "context"),
    )  # fmt: skip
    if counts["handshakes"]:
        numbers = counts["handshake_ms"], counts["handshake_s"]
        text += " The handshakes took %.0f ms of CPU and %.2f s from start to end." % numbers
    return text


def sentence_of_client(row):
    """Return what one client did, in words."""
    name = row["client"] or "the program"
    if row["through"] not in (None, row["client"]):
        name += " (for %s)" % row["through"]
    numbers = [several(row[key + "s"], key) for key in ("load", "connection", "context")]
    text = "%s: %s, %s, %s" % tuple([name] + numbers)
    return text + (", at %s" % row["at"][0][0] if row["at"] else "")


def load_lines(report):
    """Yield the lines on loads."""
    if "counts" in report:
        for line in count_lines(report):
            yield line
        return
    size = report["certificates"]
    if report["verdicts"]["certificate loads"] == UNSEEN:
        clients = ", ".join(report["known_to_the_doctor"])
        yield wrapped("No client that the doctor knows is imported. It knows %s." % clients)
    else:
        text = "Imports alone tell nothing of it: doctor.py run -- ... counts, in your program."
        yield wrapped(text)
    if report["load_ms"]:
        amount = "%d certificates" % size if size else "the default certificates"
        ssl_version, loads_version = report["openssl"]["ssl"], report["openssl"].get("loads")
        note = (
            " (of %s, which pyOpenSSL brings)" % loads_version
            if loads_version not in (None, ssl_version)
            else ""
        )
        yield wrapped("one load of %s takes %s ms CPU%s" % (amount, span(report["load_ms"]), note))
    if report["loads_at_import"]:
        yield wrapped("loads while the program was imported: %d" % report["loads_at_import"])
    for row in report["loads"]:
        name = row["client"] + ("" if row["imported"] else " (installed, not imported)")
        if row["error"]:
            yield wrapped("%s: not counted (%s)" % (name, row["error"]))
            continue
        counts = ", ".join(str(number) for number in row["by_connection"])
        text = "tried: %s, loads by three connections of one session: %s" % (name, counts)
        text += "; when it is made: %(made)d" % row if row["made"] else ""
        text += "; when %(client)s is imported: %(at_import)d" % row if row["at_import"] else ""
        text += "; by one %(client)s.get: %(by_call)d" % row if row["by_call"] is not None else ""
        yield wrapped(text)


def http_lines(http):
    """Yield the lines on HTTP."""
    if http["url"] is None:
        yield wrapped("not asked: --url https://... asks a server of yours")
    elif not http["clients"]:
        yield wrapped("no client that can be asked is imported")
    if http["offers"]:
        yield wrapped("the server chooses %s where both are offered" % http["offers"])
    for row in http["clients"]:
        text = "%(client)s: %(error)s" % row
        if not row["error"]:
            text = "%(client)s speaks %(version)s; " % row
            text += "first request %.0f ms, second %.0f ms" % tuple(row["ms"])
        yield wrapped(text)


def advice_lines(advice):
    """Yield the lines on what to change."""
    for number, change in enumerate(advice, 1):
        yield wrapped(change["what"], "  %d. " % number)
        for name in ("remove", "add", "package", "saves", "chapter"):
            if change[name]:
                yield wrapped(change[name], "     %-8s " % (name + ":"))


def annotations(report):
    """Yield what GitHub shows beside the lines of a program, one for each thing to change."""
    if "trouble" in report:
        yield "::warning title=tls-doctor::%s" % escaped(report["trouble"])
        return
    level = "error" if report["exit_status"] == 1 else "notice"
    for change in report.get("advice", ()):
        place = re.search(r"([^ ,]+\.py):(\d+)", change["what"])
        location = "file=%s,line=%s," % place.groups() if place else ""
        text = change["what"] + (" Add: " + change["add"] if change["add"] else "")
        text += " Remove: " + change["remove"] if change["remove"] else ""
        yield "::%s %stitle=tls-doctor %s::%s" % (level, location, change["id"], escaped(text))


def escaped(text):
    """Return a text as an annotation of GitHub's takes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
