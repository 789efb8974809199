"""What upstream/toolbelt-231.md says of its adapter, tried with one pair of releases.

The pair is of requests and urllib3. Runs inside a stack; tests/cure/test_toolbelt_231.py asks.
"""

# ruff: noqa: UP031, E402
import json
import re
import ssl
import sys

sys.path[:0] = [sys.argv[1]]
ASKED = json.load(sys.stdin)
PATHS, SERVERS = ASKED["world"]["paths"], ASKED["world"]["servers"]

import requests
import urllib3
from trust_ears import Ear, replaced, server_context

COUNTED = ("load_verify_locations", "load_default_certs", "set_default_verify_paths")


def counting(name):
    """Count the calls of a method of contexts, from now on."""
    stock = getattr(ssl.SSLContext, name)

    def counted(self, *args, **kwargs):
        LOADS.append(name)
        return stock(self, *args, **kwargs)

    setattr(ssl.SSLContext, name, counted)


LOADS = []
for each in COUNTED:
    counting(each)


def adapter_class():
    """The adapter of the text, which is code to copy."""
    names = {"HTTPAdapter": requests.adapters.HTTPAdapter}
    [code] = re.findall(r"```python\n(.*?)```", ASKED["text"], re.DOTALL)
    if ASKED["without_cert_verify"]:
        code = code.partition("    def cert_verify")[0]
    exec(code, names)
    return names["SSLContextAdapter"]


def session(route, proxy):
    made = requests.Session()
    made.trust_env = False
    made.mount("https://", adapter_class()(CONTEXT, FOR_PROXIES))
    if route != "direct":
        made.proxies = {"https": "%s://127.0.0.1:%d" % (route.split()[0], proxy.port)}
    return made


def asked(route, shown, n=1, **options):
    """Return what came of each of n connections ("came"), "loads", and what was heard.

    "loads" are the calls that loaded; "server" and "proxy" say what they heard.
    """
    secure = server_context(SERVERS["root"]) if route == "https proxy" else None
    with Ear(server_context(SERVERS[shown])) as server, Ear(secure, forges=True) as proxy:
        url = "https://127.0.0.1:%d/login" % server.port
        del LOADS[:]
        came = []
        with session(route, proxy) as made:
            for _ in range(n):
                try:
                    came.append(made.get(url, timeout=20, **options).text)
                except Exception as error:
                    came.append(type(error).__name__)
        loads = list(LOADS)
    return {
        "came": came,
        "loads": loads,
        "server": [line for each in server.heard for line in each["requests"]],
        "proxy": [line for each in proxy.heard for line in each["requests"]],
    }


def there(url, proxies=None):
    """What comes of one request to a server that has no ear."""
    with session("direct", None) as made:
        try:
            return made.get(url, timeout=20, proxies=proxies).status_code
        except Exception as error:
            return type(error).__name__


CONTEXT = ssl.create_default_context(cafile=PATHS["file"])
FOR_PROXIES = ssl.create_default_context(cafile=PATHS["file"])
# As the text says: urllib3 1.x compares names by itself, and gives the context no address.
CONTEXT.check_hostname = not urllib3.__version__.startswith("1.")
# Not the one of the root: what verify=True names must not be trusted beside the context's own.
with replaced(requests.adapters, "DEFAULT_CA_BUNDLE_PATH", PATHS["other"]):
    print(json.dumps({
        "releases": [requests.__version__, urllib3.__version__],
        "thirty": {
            route: asked(route, "root", n=30) for route in ("direct", "http proxy", "https proxy")
        },
        "another name": there(ASKED["world"]["urls"]["wrong host"]),
        "proxy of another name": there(
            ASKED["world"]["urls"]["valid"],
            {"https": ASKED["world"]["proxy of another name"].replace("http:", "https:")},
        ),
        "stranger": asked("direct", "other"),
        "verify=path": asked("direct", "other", verify=PATHS["other"]),
        "verify=False": asked("direct", "root", verify=False),
        "cert": asked("direct", "root", cert=ASKED["world"]["certs"]["alice"]),
    }))  # fmt: skip
