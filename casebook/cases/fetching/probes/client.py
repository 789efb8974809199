"""The measured code: one file of fetching/clients, read before the steps and run after them."""

import re

#: Who imports one of these patches, or is patched, with gevent: nothing may be imported before.
OF_GEVENT = {"gevent", "grequests"}

#: Libraries with a TLS that is not Python's: its contexts and loads cannot be counted.
OF_OTHER_TLS = {"pycurl", "curl_cffi"}


class Client(object):
    """A client's file. What has to be known before it may run is read off its imports.

    is_of_gevent: it brings gevent. is_countable: its TLS is Python's. is_threaded: it starts
    threads of its own.
    """

    def __init__(self, path):
        with open(path) as file:
            self._source = file.read()
        self._path = path
        imported = set(re.findall(r"^(?:import|from) (\w+)", self._source, re.MULTILINE))
        self.is_of_gevent = bool(imported & OF_GEVENT)
        self.is_countable = not imported & OF_OTHER_TLS
        self.is_threaded = "threading" in imported

    def load(self):
        """Run the file, as an import does; return its `fetch(urls, verify)`."""
        module = {"__name__": "client", "__file__": self._path}
        exec(compile(self._source, self._path, "exec"), module)
        return module["fetch"]


class Urls(list):
    """URLs that know how many were taken: a client that raises did it at the last one."""

    position = 0

    def __iter__(self):
        for url in list.__iter__(self):
            self.position += 1
            yield url
