"""The second case's experiments: what loading certificates costs, and what became of a cure.

What chapters use: Task (of `loading`), COMPUTING and on_two_cores (of `cores`), Hosts (of `hosts`),
and the modules complaints, connection_costs, counts, in_threads, loading, reading and weights. The
night uses `sharing` (casebook/upstream.py).
"""

from casebook import face

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
