import re, pathlib, json
def sub(path, *pairs):
    p = pathlib.Path(path); s = p.read_text()
    for a, b in pairs:
        assert s.count(a) == 1, (path, s.count(a), a)
        s = s.replace(a, b)
    p.write_text(s)
T="bookmaker/sweep/templates/"
g=pathlib.Path(T+"gallery.html"); s=g.read_text()
i=s.index("<script>\n")+len("<script>\n"); j=s.index("</script>")
pathlib.Path(T+"gallery.js").write_text(s[i:j])
s=s[:i-1]+"{{ script }}"+s[j:]
s=s.replace('<form class="filters" onsubmit="return false">','<div class="filters" role="search">').replace("</form>","</div>")
g.write_text(s)
sub(T+"base.html",("""<meta charset="utf-8">
""","""<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
"""))
sub("bookmaker/sweep/_gallery.py",
("""Nothing is loaded from elsewhere; the table sorts and filters with a few lines of script in the page itself
and is complete without them. Every text goes through Jinja's escaping.
\"\"\"

import io
""","""Nothing is loaded from elsewhere; the table sorts and filters with a few lines of script in the page itself
and is complete without them. Every text goes through Jinja's escaping, and a page's policy lets no other
script run and nothing be asked for.
\"\"\"

import base64
import hashlib
import io
"""),
("""TEMPLATES = Path(__file__).parent / "templates"
""","""TEMPLATES = Path(__file__).parent / "templates"
SCRIPT = (TEMPLATES / "gallery.js").read_text(encoding="utf-8")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
)
"""),
("""    common = {"name": name, "shown_columns": SHOWN, "runs": runs.to_dict("records"), "page": _page_name}
""","""    common = {"name": name, "shown_columns": SHOWN, "runs": runs.to_dict("records"), "page": _page_name}
    common |= {"policy": Markup(POLICY), "script": Markup(SCRIPT)}
"""))
sub("tests/unit/test_sweep.py",
("""def test_text_is_escaped():""","""def test_every_page_has_a_policy_that_lets_its_own_script_run_and_no_other():
    for text in pages_of(measured()).values():
        (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
        assert text.index(policy) < text.index("<style") and "on" not in re.findall(r"\\s(on)\\w+=", text)
        allowed = re.findall(r"'sha256-([\\w+/=]+)'", policy.partition("script-src")[2])
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
        assert set(hashes) <= set(allowed) and len(allowed) == 1
        assert {"default-src 'none'", "form-action 'none'", "base-uri 'none'"} <= set(policy.split("; "))
        assert "'unsafe-inline'" not in policy.partition("script-src")[2] and "<form" not in text


def test_text_is_escaped():"""),
("""import io
import re
""","""import base64
import hashlib
import io
import re
"""))
sub("tests/book/test_gallery.py",
("""    page.fill("#search", "s1")
""","""    page.fill("#search", "s1")
    page.press("#search", "Enter")
"""))
