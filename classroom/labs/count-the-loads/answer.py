"""Count the loads: your answers. README.md beside this file says what is asked."""

import requests

# 1. Before anything is measured. Thirty threads each call requests.get once, over HTTPS. How often
#    are the trusted certificates loaded, all threads together? A whole number.
PREDICTION = None


# 2. Make this load them once, whatever the number of threads, and change nothing else.
def get(url, verify=True, cert=None, timeout=30):
    """What requests.get does, with these three arguments."""
    return requests.get(url, verify=verify, cert=cert, timeout=timeout)


# 3. The grader prints rows that it measured. What does stock requests load once for each of:
#    "threads", "requests" or "connections"? And which two rows rule the other two out?
LOADS_GO_WITH = None
BECAUSE = []  # letters of rows, such as ["A", "B"]
