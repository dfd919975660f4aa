"""Bytes that nobody would write, at every door behind which something from outside is read.

A case changes a valid input, by bytes and by tokens. It ends *accepted*, as a *typed refusal* that names
the file in one line of visible characters, or as a third outcome: an untyped exception, an ended process,
more than 512 MB, more than 5 s. `make fuzz N=... SEED=... JOBS=...` runs it.

`mutations` changes inputs, `doors` and `handed` have them and what reads them, `worker` runs cases in a
process with bounds, and `corpus/` keeps what was found, which the tests replay. Cases are drawn, and not
guided by coverage as those of `atheris` are: it is no package of the locks that name everything a test may
run.
"""
