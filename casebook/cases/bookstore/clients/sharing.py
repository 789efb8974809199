"""Books that several readers of one event loop share."""

import asyncio

from shelf import path


async def share(shelf, books, readers, get):
    """Let readers share books: each asks for the next one when it has put its last.

    get: a coroutine function from a path to (status, body, announced length).
    """
    remaining = iter(books)

    async def reader():
        for book in remaining:
            with shelf.asking(book):
                shelf.put(book, *await get(path(book)))

    await asyncio.gather(*(reader() for _ in range(min(readers, len(books)))))
