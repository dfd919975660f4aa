import re, pathlib, json
def sub(path, *pairs):
    p = pathlib.Path(path); s = p.read_text()
    for a, b in pairs:
        assert s.count(a) == 1, (path, s.count(a), a)
        s = s.replace(a, b)
    p.write_text(s)
sub("README.md",
("whether every run, the manifest, the site and the PDF are as they were made, in one line; fails where something is not |",
 "whether every run, the manifest, the site and the PDF are as they were made, in one line, and a sweep of the profile in another; fails where something is not |"))
sub("book/how_to_use.md",
("""with a page for each run and a comparison over budgets.
""","""with a page for each run and a comparison over budgets.
Table, pages and the records of all runs are sealed together: `make verify PROFILE=smoke` says whether they are as they were made.
"""))
sub("SECURITY.md",
("notebooks, results, pages and the PDF are sealed, and `make verify` compares them.","notebooks, results, pages, the PDF and the tables of sweeps are sealed, and `make verify` compares them."))
