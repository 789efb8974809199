"""Six calls with stripe. The server knows no customers, and says so."""

import os

import stripe

SITE = os.environ["SITE"]


stripe.api_base, stripe.api_key = SITE.rpartition("/")[0], "none"
stripe.ca_bundle_path, stripe.max_network_retries = os.environ["SSL_CERT_FILE"], 0


def list_customers():
    for _ in range(6):
        try:
            stripe.Customer.list()
        except (stripe.StripeError, AttributeError):  # the answer is not one of theirs
            pass


#: By the names that machine files know them by.
JOBS = {
    "kept": list_customers,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
