"""Show what can be run here, and what is missing."""

import json
from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("--json", action="store_true", help="one JSON array of all stacks")
    add("--get", action="store_true", help="get Python 2.7 and 3.7 if they are missing")
    add("--make", action="store_true",
        help="make the environments of all chapters, as a build does first")  # fmt: skip


def run(options: Namespace) -> None:
    """Show the stacks, or get and make what they need."""
    from casebook import stacks
    from casebook.stacks import environments, pythons

    if options.get:
        pythons.get()
    if options.make:
        environments.ensure_all(stacks.of_chapters())
    if options.get or options.make:
        return
    states = [environments.status(stack) for stack in stacks.load().values()]
    if options.json:
        print(json.dumps(states, indent=2))
        return
    width = max(len(state["name"]) for state in states)
    for state in states:
        print(
            f"{state['name']:<{width}}  {state['state']:<14} "
            f"{state['interpreter'] or '-':<8} {' > '.join(state['steps'])}"
            + (f"  + {state['patch']}" if state["patch"] else "")
        )
        print(f"{'':<{width}}  {state['about']}")
