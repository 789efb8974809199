"""Read a profile: your answers. README.md beside this file says what is asked."""

# 1. Before anything is measured, and before you open them. Both a.prof and b.prof are of a program
#    that its users call slow. Which one is slow because it computes? "a", "b", "both" or "neither".
PREDICTION = None


# 2. Find what a dump is about: the line with the most time of its own.
def read(path):
    """Answer three questions about a dump of cProfile's.

    Return ["waits" or "computes", the function's name as it stands in the dump, how often it was
    called].
    """
    return None


# 3. Which of the two gains more from a processor that is twice as fast? And which from an event
#    loop that is not held up? "a.prof" or "b.prof".
FASTER_PROCESSOR = None
FREE_LOOP = None
