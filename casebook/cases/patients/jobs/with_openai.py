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


def each():
    for _ in range(6):
        list_models(client())


def kept():
    service = client()
    for _ in range(6):
        list_models(service)


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
