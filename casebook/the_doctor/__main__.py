"""Build casebook/doctor.py, one file to carry away, from the parts in this folder.

python -m casebook.the_doctor
"""

import ast
from pathlib import Path

from casebook.pages import address

HERE = Path(__file__).parent
#: From what stands alone to what uses it. The text at the top is that of `__init__.py`.
PARTS = (
    "basis words processes server left_behind importing clients blocking loads libraries counts "
    "heartbeat probes which_http advice judging report attaching examination trying again running "
    "schema command_line"
).split()
FIRST = """\
#!/usr/bin/env python
# ruff: noqa: B904, UP004, UP010, UP024, UP031, RUF005, B905, UP028
# Made of the parts in the_doctor/ by `python -m casebook.the_doctor`: edit those.
"""
BESIDE = """
import os
import sys

if __name__ == "__main__" and sys.path and "__file__" in globals():
    # A json.py that lies beside this file is not the one that is meant.
    _here = os.path.dirname(os.path.abspath(__file__))
    if os.path.realpath(sys.path[0] or ".") == os.path.realpath(_here):
        sys.path[0] = os.path.dirname(os.__file__)

"""
EARLY = """

# What is imported before gevent patches is one of the illnesses, so nothing is imported up here
# that brings in ssl, socket, select or threading before the program does.
"""
LAST = """\
if __name__ == "__main__":
    sys.exit(start())
"""


def built() -> str:
    """The whole file as text."""
    imports, bodies = set(), []
    for name in PARTS:
        text = (HERE / f"{name}.py").read_text()
        text = text.replace('ADDRESS = ""', f'ADDRESS = "{address.of_repository()}"')
        lines, tree = text.splitlines(), ast.parse(text).body
        for node in tree[:1] + [
            each for each in tree if isinstance(each, ast.Import | ast.ImportFrom)
        ]:
            if isinstance(node, ast.Import):
                imports.add(lines[node.lineno - 1])
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
        title = ast.literal_eval(tree[0].value).splitlines()[0].rstrip(".").lower()
        bodies.append(f"# {'-' * (96 - len(title))} {title}\n\n\n" + "\n".join(lines).strip())
    head = (HERE / "__init__.py").read_text().rstrip()
    head += "\n\nfrom __future__ import division, print_function\n" + BESIDE
    head += "\n".join(sorted(imports - {"import os", "import sys"}))
    head += EARLY
    return "\n\n\n".join([FIRST + head.rstrip(), *bodies, LAST])


if __name__ == "__main__":
    (HERE.parent / "doctor.py").write_text(built())
