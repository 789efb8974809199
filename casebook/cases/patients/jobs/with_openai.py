"""Six calls with openai. The server knows no models, and says so."""

import os

import openai

SITE = os.environ["SITE"]


def client():
    return openai.OpenAI(api_key="none", base_url=SITE, max_retries=0)


def list_models(service):
    try:
        service.models.list()
    except openai.APIStatusError:
        pass


def with_a_client_each():
    for _ in range(6):
        list_models(client())


def with_one_client():
    service = client()
    for _ in range(6):
        list_models(service)


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_client_each,
    "kept": with_one_client,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
