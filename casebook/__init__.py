"""The instruments of the book: stacks, a lab server, probes, runs, claims and charts.

What chapters import, loaded when it is first used:

measure, observe, recorded   runs of stacks, now or from the reference run
listings                     the measured clients and quotations of installed packages, as code
analysis, modes, trust       what runs say; how much is measured; what a client trusts
turns                        who held the thread in an observed run
claim                        a finding, its value and its condition
ratio, level, window         the hypothesis of a finding on a clock: a value and its window
Hypothesis                   the same, with a value that the chapter computes
published, compare           what the sources printed, and how ours compares with it
chapters                     what each chapter takes, and what of it this machine can measure
charts, tables, words        runs as pictures, as tables, and how things are named in both
steps                        what is done to a stack before it fetches
doctor, shared_context       the two products, whose single files readers carry away
stacks, server               what can be measured and where it runs; who answers it
"""

from casebook import face

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
