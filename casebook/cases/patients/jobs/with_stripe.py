"""Six calls with stripe. The server knows no customers, and says so."""

import os

import stripe

SITE = os.environ["SITE"]


stripe.api_base, stripe.api_key = SITE.rpartition("/")[0], "none"
stripe.ca_bundle_path, stripe.max_network_retries = os.environ["SSL_CERT_FILE"], 0


def kept():
    for _ in range(6):
        try:
            stripe.Customer.list()
        except (stripe.StripeError, AttributeError):  # the answer is not one of theirs
            pass


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
