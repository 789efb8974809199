from casebook.cases.handshakes import crashes as crashes
from casebook.cases.handshakes import server as server
from casebook.cases.handshakes import threads as threads
from casebook.cases.handshakes.threads import WAYS as WAYS
from casebook.cases.handshakes.threads import after_patching as after_patching
from casebook.cases.handshakes.threads import measure as measure
from casebook.cases.handshakes.threads import verdict as verdict
from casebook.cases.handshakes.threads import where_they_wait as where_they_wait
