import pstats
import re

PREDICTION = "b"


def read(path):
    lines = pstats.Stats(path).stats
    place, counts = max(lines.items(), key=lambda line: line[1][2])
    waiting = re.search("poll|select|recv|read|sleep|acquire|wait", place[2])
    return ["waits" if waiting else "computes", place[2], counts[1]]


FASTER_PROCESSOR = "b.prof"
FREE_LOOP = "a.prof"
