"""What a machine file may not say of its machine: a path, a user, a host."""

import getpass
import json
import os
import platform
import re
import socket
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from casebook import places

#: What would name a place on a machine: folders of users and of what is temporary.
_PLACES = re.compile(r"/home/|/Users/|/root\b|/tmp/|/var/folders/|[A-Za-z]:[\\/]+Users")
#: Names of hosts and users that tell nobody anything.
_COMMON = {"localhost", "root", "user", "runner", "ubuntu", "debian", "admin"}
#: A shorter name is a word of its own too often.
_SHORTEST = 4


@dataclass(frozen=True)
class Own:
    """What would give a machine away.

    Parameters:
        home: the folder of the user.
        folders: others whose paths are cut to the name of the file.
        names: of the user and of the host.
    """

    home: str
    folders: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of_this_machine(cls) -> "Own":
        """Return that of this machine and of who uses it."""
        folders = (str(places.ROOT), str(places.LOCAL), tempfile.gettempdir())
        names = [socket.gethostname(), platform.node()]
        try:
            names.append(getpass.getuser())
        except (KeyError, OSError):  # no such user in this container
            pass
        return cls(str(Path.home()), folders, tuple(dict.fromkeys(names)))

    def cleaned(self, value: Any) -> Any:
        """Cut the paths in a value that lie in these folders to their last parts."""
        if isinstance(value, dict):
            return {self.cleaned(name): self.cleaned(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.cleaned(part) for part in value]
        return self._paths.sub(self._last_part, value) if isinstance(value, str) else value

    def leak(self, line: str) -> str:
        """Find a folder or one of the names in a line of JSON; empty if there is none."""
        for text in map(_nfc, _texts(json.loads(line))):
            if match := _PLACES.search(text):
                return text[match.start() : match.start() + 40]
            if match := self._words.search(text):
                return match[0]
        return ""

    @cached_property
    def _homes(self) -> set[str]:
        """Return the folder of the user, as it is called and as it is reached."""
        return {_one_spelling(folder) for folder in (self.home, os.path.realpath(self.home))}

    @cached_property
    def _paths(self) -> re.Pattern[str]:
        paths = (self.home, *self.folders)
        folders = {*paths, *map(os.path.realpath, paths)} - {"/"}
        # A system may spell a letter with a mark in two ways, and not tell capitals apart.
        spellings = {
            unicodedata.normalize(form, folder) for form in ("NFC", "NFD") for folder in folders
        }
        longest_first = sorted(spellings, key=len, reverse=True)
        alternatives = "|".join(re.escape(folder).replace("/", "/+") for folder in longest_first)
        # What goes on with a letter is another folder, whose name begins as that of this one.
        return re.compile(rf"(?:{alternatives})(?![\w-])(?:/[^\s'\"<>,;:]*)?", re.I)

    @cached_property
    def _words(self) -> re.Pattern[str]:
        names = {_nfc(name) for name in self.names} - _COMMON
        alternatives = "|".join(map(re.escape, _long_names(names)))
        return re.compile(rf"(?<![\w-])(?:{alternatives or '(?!)'})(?![\w-])", re.I)

    def _last_part(self, path: re.Match[str]) -> str:
        full_path = path[0].rstrip("/")
        return "~" if _one_spelling(full_path) in self._homes else full_path.rpartition("/")[2]


def _long_names(names: Iterable[str]) -> list[str]:
    return sorted((name for name in names if len(name) >= _SHORTEST), key=len, reverse=True)


def _one_spelling(path: str) -> str:
    return re.sub("/+", "/", _nfc(path)).casefold()


def _nfc(text: str) -> str:
    """Return a text in the one spelling that Unicode has for it."""
    return unicodedata.normalize("NFC", text)


def _texts(value: Any) -> Iterator[str]:
    """Yield all text in a value of JSON, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
