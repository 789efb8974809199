"""How the benchmarks print a ratio beside what it should not exceed."""


def show(name: str, value: float, target: float | None) -> None:
    """One line: the name, the ratio, and where there is a target, whether it is more."""
    said = ""
    if target is not None:
        said = f"   (at most {target:g})" + ("" if value <= target else "  MISSED")
    print(f"  {name:<58} {value:6.2f}{said}")
