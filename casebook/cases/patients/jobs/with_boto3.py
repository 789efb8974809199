"""Six calls of a service with boto3. The server knows nothing of buckets, and says so."""

import os

import boto3
from botocore.exceptions import ClientError

SITE = os.environ["SITE"]


def client():
    return boto3.client(
        "s3", endpoint_url=SITE.rpartition("/")[0], aws_access_key_id="none",
        aws_secret_access_key="none", region_name="eu-central-1",
    )  # fmt: skip


def head_bucket(service):
    try:
        service.head_bucket(Bucket="books")
    except ClientError:
        pass


def with_a_client_each():
    for _ in range(6):
        head_bucket(client())


def with_one_client():
    service = client()
    for _ in range(6):
        head_bucket(service)


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_client_each,
    "kept": with_one_client,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
