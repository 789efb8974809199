"""A listed script as a server: python listed_site.py OPTIONS (JSON). What it says goes to the log.

The script gets a private key, a certificate and the file of the books as its arguments.
"""

import json
import os
import runpy
import sys

import owner

options = json.loads(sys.argv[1])
owner.attend(options["folder"])
os.dup2(2, 1)
if options["without"]:
    sys.modules[options["without"]] = None  # as if it were not installed: importing it fails
sys.argv = [options[name] for name in ("script", "key_file", "chain_file", "books")]
runpy.run_path(options["script"], run_name="__main__")
