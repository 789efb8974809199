from casebook.cases.loop.client_tasks import WAYS as WAYS
from casebook.cases.loop.client_tasks import measure as measure
from casebook.cases.loop.client_tasks import timeline as timeline
