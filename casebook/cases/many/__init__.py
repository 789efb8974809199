"""The first case's job on many machines: a crawl on Dask, what a page of it costs, and a model.

One direction inside: costs and jobs, then capacity, then large. What chapters use: `jobs.measure`,
`costs.measure`, `large.measure`, and `capacity`.
"""

from casebook import face

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
