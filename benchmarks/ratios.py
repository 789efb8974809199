"""How the benchmarks print a ratio beside what it should not exceed."""


def show(name: str, value: float, target: float) -> None:
    """One line: the name, the ratio, the most that it should be, and whether it is more."""
    missed = "" if value <= target else "  MISSED"
    print(f"  {name:<58} {value:6.2f}   (at most {target:g}){missed}")
