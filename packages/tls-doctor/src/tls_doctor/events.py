"""The events of a run."""

from __future__ import division, print_function

#: What the fields of several events mean.
FIELDS = {
    "is": "which event it is; every event has it, and the next three",
    "pid": "of the process that noted it",
    "cpu": "the milliseconds of CPU that the process has used, without those in `compiled`",
    "compiled": "the milliseconds in which Python compiled modules: it does that once",
    "c": "number of the context: no other of this process has had it; None: unknown",
    "h": "number of the connection",
    "who": "who made the call, as `Probes.callers` tells",
    "t": "when it ended, in seconds (of `begin`: when the handshake began)",
    "since": "when it began (of `begin`: from when it was wanted, if that is known)",
    "by": "the module of its class; of loops: which loop; of `closing`: who asked for it",
    "loop": "whether it happened in the thread of a running loop of asyncio or trio",
    "waiting": "whether others waited for that loop",
    "s": "seconds",
    "ms": "milliseconds of CPU",
    "why": "the reason, in words",
    "where": "the place in the sources, as `caller` tells",
}
#: Every event that is noted, by its name ("is"): (its own fields, what it means).
EVENTS = {
    # The process.
    "process": ("", "a process begins to be counted"),
    "forked": ("", "a process was forked, and is counted for itself"),
    "start": ("", "the program's code begins"),
    "exit": ("", "the process ends"),
    "trial": ("ms", "the doctor itself used the processor"),
    "collected": ("contexts connections", "a collection by the doctor alone freed these"),
    # Contexts and loads.
    "context": ("c who default", "a context was made; default: create_default_context, called by "
        "the program's own code, made it"),
    "load": ("c who ms kib alive loop waiting trust by t since thread", "certificates were "
        "loaded; kib: the memory before and after; alive: contexts with these certificates; "
        "trust: which"),
    "identity": ("c identity alive", "a context was given a client certificate; identity: its "
        "digest; alive: contexts with the same certificates that show it, too"),
    "truststore": ("where", "truststore was injected"),
    "injection": ("where", "pyOpenSSL was injected into urllib3"),
    # Handshakes and connections.
    "begin": ("h c who loop since t thread by http open", "a handshake began; http: its client is "
        "one that the doctor knows; open: connections of the process, with this one"),
    "end": ("h t ok why ms alpn host", "a handshake ended; ok: it came through; alpn: the protocol "
        "that was chosen"),
    "failed": ("why", "no connection was made, and no handshake told why"),
    "unreached": ("why port", "no host was found, or it refused, or was given up; until the first "
        "`reached` of this port"),
    "reached": ("port", "a host was reached; noted once for each port in a process"),
    "rejected": ("h why", "it ended, or with an error, in the place of a first answer"),
    "exchange": ("h n", "how many more times something was sent and answered (none of HTTP/2)"),
    "request": ("c", "a request, if http.client tells"),
    "closing": ("c h who by", "a reply ends its connection (Connection: close)"),
    # What keeps connections.
    "session": ("", "a Session of requests asks by HTTPS for the first time"),
    "pool": ("", "a PoolManager was made that is not of requests"),
    "botocore": ("", "a client of botocore was made"),
    "full": ("c who size wanted", "a pool of urllib3's closed a connection for which it had no "
        "place; wanted: the most in use at once"),
    "evicted": ("who size wanted", "a PoolManager made a pool for a host again, having given up "
        "one with an open connection; wanted: its hosts"),
    # Event loops.
    "loop": ("name", "the library of a loop was imported"),
    "heartbeat": ("by", "a loop is looked at"),
    "block": ("s waiting who by", "a client that does not await kept a loop waiting"),
    "silence": ("s waiting who by", "a turn of a loop took long while its thread waited"),
    "greenlet": ("itself", "a greenlet fetches, or (itself: False) the main program does while "
        "greenlets wait; noted once each"),
    "wait": ("s stood who", "a greenlet waited for a reply; stood: its loop took no turn"),
    "own tls": ("name", "what brings TLS of its own was imported"),
    # What the run itself notes.
    "uncounted": ("why", "nothing more is counted in this process"),
    "unprobed": ("module why", "a module could not be probed"),
    "trouble": ("why", "the program could not be run"),
    "raised": ("why", "the program ended with an exception"),
    "found": ("found", "what the program left behind at its end"),
    "untried": ("why", "what it left behind could not be looked at"),
}  # fmt: skip
