"""Whose certificate a client shows that shares its context, and who is not asked."""

import pytest

from casebook.cases.bookstore import abilities
from casebook.cases.certificates import sharing
from casebook.errors import RunFailed


@pytest.mark.parametrize("client", sharing.CLIENTS)
def test_a_certificate_that_one_client_brings_is_shown_by_the_next(client: str) -> None:
    """As chapter 16 says of httpx, and without_the_cure.md of a session of requests."""
    assert sharing.leaks(client, abilities.CLIENTS[client][0]) is True


def test_a_client_that_takes_no_certificate_beside_a_context_is_not_asked() -> None:
    others = abilities.CLIENTS.keys() - set(sharing.CLIENTS)
    assert [sharing.leaks(client, "no-such-stack") for client in others] == [None] * len(others)


@pytest.mark.parametrize(
    ("shown", "leaks"),
    [(["nobody", "alice", "nobody"], False), (["nobody", "alice", "alice"], True)],
)
def test_what_the_third_shows_decides(shown: list[str], leaks: bool) -> None:
    assert sharing._figures({"client": "httpx"}, {"shown": shown}) == {"leaks": leaks}


@pytest.mark.parametrize("shown", [["alice"] * 3, ["nobody"] * 3])
def test_a_host_that_was_not_shown_what_was_brought_is_no_answer(shown: list[str]) -> None:
    with pytest.raises(RunFailed, match="Nothing was recorded"):
        sharing._figures({"client": "httpx"}, {"shown": shown})
