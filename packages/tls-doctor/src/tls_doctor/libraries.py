"""Libraries between a program and its clients."""

from __future__ import division, print_function

#: Those that wrap a program's functions: none of them makes a client.
DECORATORS = frozenset(
    "pydantic wrapt tenacity functools decorator backoff retry retrying stamina cachetools "
    "typeguard beartype deprecated opentelemetry sentry_sdk ddtrace newrelic elasticapm".split()
)
#: What to keep of a library, and the keyword by which it takes a context or a client of one's own;
#: None: it takes neither.
LIBRARIES = {
    "openai": ("openai.OpenAI", "http_client"),
    "slack_sdk": ("slack_sdk.WebClient", "ssl"),
    "stripe": ("stripe.StripeClient", "http_client"),
    "boto3": ("boto3.client", None),
    "kubernetes": ("kubernetes.client.ApiClient", None),
    "redis": ("redis.Redis", None),
    "svix": ("svix.api.Svix", None),
    "websockets": ("websockets.sync.client.connect", "ssl"),
    "aiomqtt": ("aiomqtt.Client", "tls_context"),
    "aiohttp": ("aiohttp.TCPConnector", "ssl"),
    "httpx": ("httpx.Client", "verify"),
}


def is_decorator(package, codes):
    """Return whether a package only wraps the program's functions: it is known for that, or all of
    its functions that were called take whatever they are given (*args, **kwargs).
    """
    return package in DECORATORS or all(code.co_flags & 12 == 12 for code in codes)


def taken_by(library):
    """Return (how its client is kept, what is said of the context that it takes), of a library."""
    if library not in LIBRARIES:
        text = "Make one client of %s, and keep it; where it has none, see whether it takes one."
        return None, text % library
    maker, keyword = LIBRARIES[library]
    text = "Make one client of %s, and keep it" % library
    if keyword is None:
        return maker, text + " (it takes no context or client of yours)."
    return maker, text + " (it takes one of yours as %s=)." % keyword
