"""How often clients read the bundle, as the kernel counts it."""

import pytest
from here import environment

from casebook.cases.certificates import reading


@pytest.mark.skipif(bool(reading.not_here()), reason=reading.not_here())
@pytest.mark.parametrize(
    ("stack", "client", "read"),
    [
        ("requests-2.34.2-today", "threads", reading.PAGES[-1]),
        ("httpx-today", "httpx", 1),  # the control: one context for all
    ],
)
def test_the_kernel_counts_what_is_known_of_clients_in_python(stack, client, read) -> None:
    environment(stack)
    first, second = reading.bundles(stack, client)
    assert second == read
    assert first >= min(read, reading.PAGES[0])  # the first time httpx also reads its own files
