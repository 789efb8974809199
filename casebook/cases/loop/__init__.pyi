from casebook.cases.loop.clients import WAYS as WAYS
from casebook.cases.loop.clients import measure as measure
from casebook.cases.loop.clients import timeline as timeline
