PREDICTION = 10

PACKAGE = "pyopenssl"
SINCE = "archive"
IMPORT = "google.auth.transport.requests"


def verdict(run):
    if any(status != 200 for status in run["statuses"]):
        return "no timing"
    return "serial" if run["peak_in_flight"] <= 1 else "concurrent"


def mend():
    from urllib3.contrib import pyopenssl

    pyopenssl.extract_from_urllib3()


BECAUSE = ["A", "B"]
