"""A bookstore over HTTP/2: its stock, the store that serves it, clients, and their visits.

One direction inside: stock, store, clients, timed_visits. `serving` holds the scripts that run
inside the environments of the servers, `clients` those that run inside the environments of the
clients; one of them, `bare_h2`, also here, to greet a store and to record frames.

What chapters use: visit, arrivals, one_slow, cpu_of_both, from_reference (of `timed_visits`),
open_store (of `store`), and the modules calls, frames, hello, line, loops, quic, readers, stock,
store, timed_visits and witnesses. `abilities` is asked for the page *What changed upstream*.
"""

from casebook import face
from casebook.cases.bookstore import names as names

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
