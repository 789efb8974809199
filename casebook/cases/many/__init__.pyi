from casebook.cases.many import capacity as capacity
from casebook.cases.many import costs as costs
from casebook.cases.many import jobs as jobs
from casebook.cases.many import large as large
from casebook.cases.many import machines as machines
