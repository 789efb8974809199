"""The nightly job: what it imports, in this order. It then fetches its pages with grequests."""

import settings  # isort: skip
import grequests  # isort: skip
import mailer  # isort: skip
import archive  # isort: skip
import metrics  # isort: skip


def fetch(urls, verify):
    rs = [grequests.get(url, verify=verify) for url in urls]
    return grequests.map(rs, exception_handler=lambda request, error: error)


ABOUT = {"sender": mailer.SENDER, "to": archive.ARCHIVE, "counts": metrics.COUNTS}
TITLE = settings.TITLE
