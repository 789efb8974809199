"""Asks each worker of a Dask cluster to run commands of casebook on its own machine.

It runs on Python 3.10 and newer. One JSON object in: {"address", "keys": {"ca", "cert", "key"} or
null, "code": what the workers' checkouts have to be, "commands": [arguments of casebook],
"each_machine": one worker of each machine rather than every worker, "file": whether a command
writes a file, whose path is put in the place of "FILE", "wait_s": for the scheduler}.

A line of JSON out for each result, as it comes: {"worker": its name, "command", "code", "out",
"said": the last line on standard error, "status", "file": base64 or null}, or with "failed" in the
place of the last five. A line {"error"} where nothing can be asked at all.
"""

import json
import os
import sys
import time

#: Seconds between two looks at who is still there.
LOOK_S = 0.5


def run_command(command, code, wants_file):
    """Run a command of the checkout that this worker was started from, alone on its machine."""
    import base64
    import fcntl
    import os
    import subprocess
    import tempfile

    root, python = os.environ["CASEBOOK_ROOT"], os.environ["CASEBOOK_PYTHON"]

    def run(*arguments):
        return subprocess.run([python, *arguments], cwd=root, capture_output=True, text=True)

    program = "from casebook.laboratory import measurements; print(measurements.code())"
    own_code = run("-c", program).stdout.strip()
    if own_code != code:
        return {"code": own_code, "status": None}
    lock = os.path.join(tempfile.gettempdir(), "casebook-measures-%d.lock" % os.getuid())
    handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as lock_file, tempfile.TemporaryDirectory() as folder:
        fcntl.flock(lock_file, fcntl.LOCK_EX)  # other workers of this machine wait
        path = os.path.join(folder, "saved.jsonl.xz")
        process = run("-m", "casebook", *[path if word == "FILE" else word for word in command])
        packed = None
        if wants_file and os.path.exists(path):
            with open(path, "rb") as file:
                packed = base64.b64encode(file.read()).decode()
    message = (process.stderr.strip().splitlines() or [""])[-1]
    return {"code": own_code, "status": process.returncode, "out": process.stdout, "said": message,
            "file": packed}  # fmt: skip


def machine():
    """Return what tells this worker's machine from others, and what it is started with."""
    import os
    import platform
    import sys
    import uuid

    import distributed

    identifiers = [
        open(path).read().strip()
        for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id")
        if os.path.exists(path)
    ]
    return {
        "machine": "|".join([platform.node(), *(identifiers or [str(uuid.getnode())])]),
        "versions": [distributed.__version__, "%d.%d" % sys.version_info[:2]],
        "ready": {"CASEBOOK_ROOT", "CASEBOOK_PYTHON"} <= set(os.environ),
    }


def report(**content):
    """Print a line for the asker."""
    print(json.dumps(content), file=OUT, flush=True)


def asked_of(client, spec):
    """Return the workers to be asked, by address; report those that cannot be."""
    ours, machines, workers = machine()["versions"], set(), {}
    answers = client.run(machine, on_error="return")
    for address, answer in sorted(answers.items()):
        name = str(client.scheduler_info(n_workers=-1)["workers"][address]["name"])
        if isinstance(answer, BaseException):
            report(worker=name, command=[], failed="does not answer: %s" % answer)
        elif answer["versions"] != ours:
            words = [
                "distributed %s on Python %s" % tuple(versions)
                for versions in (answer["versions"], ours)
            ]
            report(worker=name, command=[], failed="it has %s, and here is %s. Make both the same: "
                 "`python -m casebook stacks --make`" % tuple(words))  # fmt: skip
        elif not answer["ready"]:
            report(worker=name, command=[], failed="it knows no checkout: start it with "
                 "`python -m casebook cluster worker`")  # fmt: skip
        elif not (spec["each_machine"] and answer["machine"] in machines):
            machines.add(answer["machine"])
            workers[address] = name
    return workers


def run(spec):
    """Run all commands on all workers, and report what comes."""
    from distributed import Client
    from distributed.security import Security

    keys = spec["keys"]
    secure = keys and Security(
        require_encryption=True, tls_ca_file=keys["ca"], tls_client_cert=keys["cert"],
        tls_client_key=keys["key"],
    )  # fmt: skip
    try:
        client = Client(spec["address"], security=secure or None, timeout=spec["wait_s"])
    except Exception as error:
        report(error="no scheduler answers at %s (%s)" % (spec["address"], error or type(error)))
        return
    with client:
        workers = asked_of(client, spec)
        if not workers:
            report(error="no worker at %s can be asked" % spec["address"])
            return
        waiting = {}
        for address, name in workers.items():
            for command in spec["commands"]:
                future = client.submit(
                    run_command, command, spec["code"], spec["file"], workers=[address],
                    allow_other_workers=False, pure=False, retries=0,
                )  # fmt: skip
                waiting[future] = (address, name, command)
        while waiting:
            time.sleep(LOOK_S)
            try:
                present = client.scheduler_info(n_workers=-1)["workers"]
            except Exception:
                present = {}
            for future, (address, name, command) in list(waiting.items()):
                if future.status == "finished":
                    report(worker=name, command=command, **future.result())
                elif future.status in ("error", "cancelled", "lost") or address not in present:
                    reason = "it died" if future.status != "error" else repr(future.exception())
                    report(
                        worker=name, command=command, failed="%s before it had answered" % reason
                    )
                else:
                    continue
                del waiting[future]


if __name__ == "__main__":
    OUT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run(json.load(sys.stdin))
