from casebook.cases.many import capacity as capacity
from casebook.cases.many import cluster as cluster
from casebook.cases.many import costs as costs
from casebook.cases.many import jobs as jobs
from casebook.cases.many import large as large
