"""Faults on purpose: every trial draws its moment and its value, and ends as one of three outcomes.

*Right bytes*: the result is that of the undisturbed run. *Typed refusal*: an error of `privhelpers.errors`,
in one sentence, and what was there before is untouched. *Third outcome*: anything else, which is a defect.

`registry` has the classes, `judge` runs and judges a trial in a forked child, `layer` breaks writes, `base`
makes what trials disturb; the other modules are the doors. `make faults N=... SEED=...` runs it.
"""
