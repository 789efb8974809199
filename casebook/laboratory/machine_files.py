"""Machine files: what one machine measured, in one file that can be sent, read and compared.

A file is lines of JSON, compressed with xz: first the head, {"format", "version", "about"}, then
one object a line: {"answer": ...}, {"finding": ...}, or {"chapter": ...}, which says what it took
there. An answer is what the store keeps (laboratory/measurements.py): raw, with what was asked as
`asked`. What follows from it, such as a verdict, is never read from a file: the code of today says
it.

A file may come from a stranger. It can lie about numbers, and do nothing else: it is text with
bounds, never a program and never an archive with paths, and what does not look like an answer is
left out. A field that an older file lacks is missing, never an error.
"""

import contextlib
import hashlib
import json
import lzma
import math
import os
import platform
import re
import ssl
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import GenericAlias
from typing import Any, NoReturn, get_args

from casebook import places
from casebook.errors import MachineFileRefused, UsageError
from casebook.laboratory import measurements
from casebook.laboratory.anonymity import Own
from casebook.stacks import PYTHONS, interpreters
from casebook.words import LIVE

FORMAT, VERSION = "casebook machine", 1
#: How a file's name ends.
SUFFIX = ".jsonl.xz"

#: A file is read only so far, and refused where it is larger: bytes packed, bytes unpacked, memory
#: of the decompressor, bytes of a line, lines.
MOST_PACKED, MOST_UNPACKED, MOST_MEMORY = 2_000_000, 64_000_000, 64_000_000
MOST_OF_A_LINE, MOST_LINES = 4_000_000, 20_000
_CHUNK = 1 << 20

#: An answer is nested only so deep: what reads it may follow it part by part.
DEEPEST = 100

#: What a field of a head or a finding may be. Lists are of one kind, numbers or text.
_Kind = type | tuple[type, ...] | GenericAlias
#: What is said of a machine: field -> what it must be. All may be missing.
ABOUT: dict[str, _Kind] = {
    "processor": str, "architecture": str, "cores": int, "system": str, "kernel": str,
    "python": str, "openssl": str, "pythons": dict, "commit": str, "mode": str, "saved_at": str,
    "measured_from": str, "measured_to": str, "unit_ms": list[float],
    "steal_s": (int, float), "note": str,
}  # fmt: skip
#: The fields of a finding, as for ABOUT.
FINDING: dict[str, _Kind] = {
    "id": str, "statement": str, "outcome": str, "value": (int, float, str, bool), "unit": str,
    "interval": list[float], "window": str, "n": int, "stack": str, "chapter": str,
    "others": list[str], "because": str,
}  # fmt: skip
#: The fields of what a chapter took there, as for ABOUT: its file's stem, and seconds.
CHAPTER: dict[str, _Kind] = {
    "stem": str, "kernel_s": (int, float), "environment_s": (int, float), "wait_s": (int, float),
    "clock_s": (int, float), "counting_s": (int, float), "drawing_s": (int, float),
    "cpu_s": (int, float),
}  # fmt: skip
#: The longest text of a head or a finding.
LONGEST = 1000


@dataclass(frozen=True)
class Machine:
    """The contents of a machine file.

    Parameters:
        name: of the file, without its suffix.
        about: what the machine is, in fields of ABOUT.
        answers: raw, as the store keeps them, each with the question as `asked`.
        findings: how the findings came out in the book built there, by id, in fields of FINDING.
        chapters: what each chapter of that book took, by its file's stem, in fields of CHAPTER.
    """

    name: str
    about: dict[str, Any]
    answers: list[dict[str, Any]] = field(repr=False)
    findings: dict[str, dict[str, Any]] = field(repr=False, default_factory=dict)
    chapters: dict[str, dict[str, Any]] = field(repr=False, default_factory=dict)

    @property
    def label(self) -> str:
        """Describe the machine in a few words: "AMD EPYC, 2 cores, OpenSSL 3.0.19"."""
        return label(self.about) or self.name


def label(about: dict[str, Any]) -> str:
    """Describe a machine in a few words.

    Parameters:
        about: fields of ABOUT, any of which may be missing.
    """
    cores, openssl = about.get("cores"), about.get("openssl", "")
    parts = (
        about.get("processor", ""),
        f"{cores} core{'s' * (cores != 1)}" if cores else "",
        " ".join(openssl.split()[:2]),
    )
    return ", ".join(filter(None, parts))


def describe() -> dict[str, Any]:
    """Describe this machine in fields of ABOUT."""
    installed = {version: interpreters.find(version) for version in PYTHONS if version[0].isdigit()}
    return {
        "processor": processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
        "pythons": {
            interpreter.version: interpreter.openssl
            for interpreter in installed.values()
            if interpreter
        },
        "commit": measurements.commit(),
    }


def processor() -> str:
    """Return the name of this machine's processor."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    match = re.search(r"^model name\s*: (.+)", text, re.M)
    return match[1].strip() if match else platform.processor() or platform.machine()


# --------------------------------------------------------------------------------------- writing


def of_this_machine(
    claims: Iterable[dict[str, Any]] = (), chapters: Mapping[str, Mapping[str, float]] | None = None
) -> Machine:
    """Gather everything that this machine has measured in its builds.

    Parameters:
        claims: records of the last build (claims.json). Those that rest on runs of this machine
            become findings.
        chapters: what each chapter took, by its file's stem.

    Raises UsageError if nothing has been measured yet.
    """
    answers = stored_answers()
    if not answers:
        raise UsageError("this machine has measured nothing yet: `make book` does, and stores it")
    about, took = describe() | steadiness(answers), chapters or {}
    rows = {stem: {"stem": stem, **seconds} for stem, seconds in took.items()}
    return Machine("here", about, answers, findings_of(claims), rows)


def stored_answers() -> list[dict[str, Any]]:
    """Read what this machine measured, the oldest first; of two answers to a question the newer."""
    newest: dict[str, dict[str, Any]] = {}
    for path in sorted(places.RUNS.glob("*.json")):
        try:
            answer = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        question = json.dumps(answer.get("asked", path.name), sort_keys=True)
        older = newest.get(question)
        if older is None or older.get("measured_at", "") <= answer.get("measured_at", ""):
            newest[question] = answer
    return sorted(newest.values(), key=lambda answer: answer.get("measured_at", ""))


def findings_of(claims: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Select the claims that rest on runs of this machine.

    Parameters:
        claims: records as in claims.json.

    Returns findings by id, in fields of FINDING.
    """
    return {
        claim["id"]: {name: claim[name] for name in FINDING if claim.get(name) not in (None, "")}
        for claim in claims
        if claim.get("source") == LIVE
    }


def steadiness(answers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Summarise when answers were measured, and how steady the machine was meanwhile.

    Parameters:
        answers: with measured_at and the columns of laboratory/conditions.py.

    Returns fields of ABOUT: saved_at; measured_from and measured_to; unit_ms, the first, the fifth
    and the ninth decile of the time that the unit of work took, in ms; steal_s, the seconds that
    the host took in all.
    """
    answers = list(answers)
    units = [answer["unit_ms"] for answer in answers if is_number(answer.get("unit_ms"))]
    stolen = [answer["steal_s"] for answer in answers if is_number(answer.get("steal_s"))]
    moments = sorted(answer["measured_at"] for answer in answers if answer.get("measured_at"))
    summary: dict[str, Any] = {"saved_at": measurements.utc_now()}
    if moments:
        summary |= {"measured_from": moments[0], "measured_to": moments[-1]}
    if len(units) > 1:
        tenths = statistics.quantiles(units, n=10, method="inclusive")
        summary["unit_ms"] = [round(tenths[index], 3) for index in (0, 4, 8)]
    if stolen:
        summary["steal_s"] = round(sum(stolen), 2)
    return summary


def save(machine: Machine, path: Path) -> int:
    """Write a machine file.

    Paths in this machine's folders are cut to the name of the file, so that the file names no
    path, user or host.

    Parameters:
        machine: what is written.
        path: where to.

    Returns the size of the file in bytes. Raises UsageError, and writes nothing, if such a name is
    left over, or if the file would be too large for `read`.
    """
    head = {"format": FORMAT, "version": VERSION, "about": machine.about}
    lines = [head, *({"finding": finding} for finding in machine.findings.values())]
    lines += ({"chapter": chapter} for chapter in machine.chapters.values())
    lines += ({"answer": answer} for answer in machine.answers)
    identity = Own.of_this_machine()
    text = "".join(f"{json.dumps(identity.cleaned(line), sort_keys=True)}\n" for line in lines)
    for number, line in enumerate(text.splitlines(), 1):
        if leak := identity.leak(line):
            raise UsageError(f"line {number} would name {leak!r}, which is of this machine alone")
    packed = lzma.compress(text.encode(), preset=7 | lzma.PRESET_EXTREME)
    if len(packed) > MOST_PACKED or len(text.encode()) > MOST_UNPACKED:
        raise UsageError(f"{path.name} would have {len(packed):,} bytes, above {MOST_PACKED:,}")
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    draft.write_bytes(packed)
    draft.replace(path)
    return len(packed)


# --------------------------------------------------------------------------------------- reading


def read(path: Path) -> Machine:
    """Read a machine file. Raises MachineFileRefused, which says why, if it is none."""
    about: dict[str, Any] = {}
    answers, findings, chapters = [], {}, {}
    for number, line in enumerate(_lines(_packed_text(path), path.name), 1):
        content = _object(line, path.name, number)
        if number == 1:
            about = _description(content, path.name)
        elif isinstance(content.get("answer"), dict):
            if _is_question(content["answer"].get("asked")):
                answers.append(content["answer"])
        elif chapter := _known_fields(content.get("chapter"), CHAPTER):
            if re.fullmatch(r"[a-z0-9_]{1,100}", chapter.get("stem", "")):
                chapters[chapter["stem"]] = chapter
        elif finding := _known_fields(content.get("finding"), FINDING):
            if re.fullmatch(r"[a-z0-9-]{1,100}", finding.get("id", "")):
                findings[finding["id"]] = finding
    if not about and not answers:
        raise MachineFileRefused(f"{path.name} holds nothing of a machine")
    return Machine(path.name.removesuffix(SUFFIX), about, answers, findings, chapters)


def _packed_text(path: Path) -> bytes:
    """Read the bytes of a machine file, no more than it may have. Raises MachineFileRefused."""
    try:
        size = path.stat().st_size
        if size > MOST_PACKED:
            raise MachineFileRefused(f"{path.name} has {size:,} bytes, above {MOST_PACKED:,}")
        with path.open("rb") as file:
            return file.read(MOST_PACKED + 1)
    except OSError as error:
        raise MachineFileRefused(f"{path.name} cannot be read: {error.strerror}") from None


def _description(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the description of the machine in a file's first line.

    Raises MachineFileRefused unless that line is of a machine file of our version.
    """
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise MachineFileRefused(
            f"{name} is not a machine file of version {VERSION}: "
            "`python -m casebook machine save` writes one"
        )
    return _known_fields(content.get("about"), ABOUT)


def read_kept(path: Path) -> Machine:
    """Read a machine file as `read` does, and faster the second time.

    What it holds is kept in this process, and unpacked in this checkout's own folder, under a
    digest of the file and of this module.
    """
    return _read_kept(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=16)
def _read_kept(path: Path, _changed: int) -> Machine:
    try:
        digest = hashlib.sha256(path.read_bytes() + Path(__file__).read_bytes())
    except OSError:
        return read(path)  # says why
    cache_path = places.LOCAL / "machines" / digest.hexdigest()
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Machine(path.name.removesuffix(SUFFIX), *json.loads(cache_path.read_bytes()))
    machine = read(path)
    parts = machine.about, machine.answers, machine.findings, machine.chapters
    with contextlib.suppress(OSError):  # a full disk makes it slower, and nothing else
        cache_path.parent.mkdir(parents=True, exist_ok=True)
        draft = cache_path.with_name(f"{cache_path.name}.{os.getpid()}.part")
        draft.write_text(json.dumps(parts))
        draft.replace(cache_path)
    return machine


def _lines(packed: bytes, name: str) -> Iterator[bytes]:
    """Unpack compressed text piece by piece, within the bounds, and yield its lines."""
    try:
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        unpacked = lines = 0
        rest, piece = b"", packed
        while not unpacking.eof:
            chunk = unpacking.decompress(piece, _CHUNK)
            piece = b""
            if not chunk and unpacking.needs_input:
                raise MachineFileRefused(f"{name} ends in the middle")
            unpacked += len(chunk)
            *complete, rest = (rest + chunk).split(b"\n")
            lines += len(complete)
            longest = max(map(len, [*complete, rest]))
            if unpacked > MOST_UNPACKED or lines > MOST_LINES or longest > MOST_OF_A_LINE:
                raise MachineFileRefused(f"{name} is larger, unpacked, than a machine file may be")
            yield from complete
    except lzma.LZMAError as error:
        raise MachineFileRefused(
            f"{name} is not compressed as a machine file is: {error}"
        ) from None
    if rest or unpacking.unused_data:
        raise MachineFileRefused(f"{name} does not end where its text does")


def _object(line: bytes, name: str, number: int) -> dict[str, Any]:
    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number")

    def finite_number(word: str) -> float:
        return float(word) if math.isfinite(float(word)) else refuse(word)

    try:
        content = json.loads(line, parse_constant=refuse, parse_float=finite_number)
    except (ValueError, RecursionError):
        raise MachineFileRefused(f"{name}, line {number}, is not JSON") from None
    if not isinstance(content, dict):
        raise MachineFileRefused(f"{name}, line {number}, is not an object")
    if _is_deep(content):
        raise MachineFileRefused(f"{name}, line {number}, is nested deeper than an answer is")
    return content


def _is_deep(value: Any) -> bool:
    """Check whether lists and tables lie in each other deeper than DEEPEST."""
    inside = [value]
    for _ in range(DEEPEST):
        parts = (
            container.values() if isinstance(container, dict) else container for container in inside
        )
        inside = [
            member for members in parts for member in members if isinstance(member, dict | list)
        ]
    return bool(inside)


def _is_question(question: Any) -> bool:
    """Check whether this can be a question: a list that begins with a name, or nothing."""
    return question is None or (
        isinstance(question, list) and bool(question) and isinstance(question[0], str)
    )


def _known_fields(content: Any, kinds: dict[str, _Kind]) -> dict[str, Any]:
    """Select the fields that are known and are what they must be.

    Parameters:
        content: of a file, whatever it is.
        kinds: name of a field -> what it must be.

    Returns them with text on one line, not longer than LONGEST.
    """
    if not isinstance(content, dict):
        return {}
    fields = {}
    for name, kind in kinds.items():
        value = content.get(name)
        if isinstance(value, bool) and kind is int:
            continue
        if isinstance(kind, GenericAlias):
            is_so = isinstance(value, list) and all(_is_of(part, *get_args(kind)) for part in value)
        else:
            is_so = isinstance(value, kind)
        if is_so and _is_plain(value):
            fields[name] = _one_line(value)
    return fields


def _is_of(value: Any, kind: type) -> bool:
    return is_number(value) if kind is float else isinstance(value, kind)


def _is_plain(value: Any) -> bool:
    """Check whether a value is text, a finite number, or a short list or table of such."""
    if isinstance(value, int | float):
        return isinstance(value, bool) or is_number(value)
    if isinstance(value, dict):
        return len(value) < 100 and all(isinstance(text, str) for text in value.values())
    if isinstance(value, list):
        return len(value) < 100 and all(isinstance(e, str) or is_number(e) for e in value)
    return True


def _one_line(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join("".join(c if c.isprintable() else " " for c in value).split())[:LONGEST]
    if isinstance(value, dict):
        return {_one_line(name): _one_line(part) for name, part in value.items()}
    return [_one_line(part) for part in value] if isinstance(value, list) else value


def is_number(value: Any) -> bool:
    """Check whether a value is a finite number that a float can hold. A bool is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def unlikeness(about: Mapping[str, Any]) -> tuple[bool, bool, float]:
    """Compare a machine with this one, for sorting: architecture, then OpenSSL, then cores."""
    this_machine = describe()
    openssl = [
        " ".join(description.get("openssl", "").split()[:2])
        for description in (about, this_machine)
    ]
    return (
        about.get("architecture", "x86_64") != this_machine["architecture"],
        openssl[0] != openssl[1],
        abs(math.log(max(1, about.get("cores") or 1) / (this_machine["cores"] or 1))),
    )


def folder() -> Path:
    """Return the folder of the machine files that come with the book."""
    return places.DATA / "machines"


def files() -> list[Path]:
    """List the machine files that come with the book, sorted by name."""
    return sorted(folder().glob(f"*{SUFFIX}")) if folder().is_dir() else []


def all_recorded() -> list[Machine]:
    """Read the machines that come with the book, sorted by the names of their files."""
    return [read_kept(path) for path in files()]
