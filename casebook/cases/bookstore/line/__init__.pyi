from casebook.cases.bookstore.line.visits import LINE as LINE
from casebook.cases.bookstore.line.visits import lost as lost
from casebook.cases.bookstore.line.visits import not_here as not_here
from casebook.cases.bookstore.line.visits import packets as packets
from casebook.cases.bookstore.line.visits import visit as visit
