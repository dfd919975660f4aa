"""`make serve` shows the site that was asked for, whole, or says in one line why it does not."""

import socket
import threading
import urllib.request

import pytest

from bookmaker.runner import published
from bookmaker.site import __main__ as command
from privhelpers.artifacts import write_atomic


@pytest.fixture
def root(tmp_path, monkeypatch):
    for name in published.SITES.values():
        site = tmp_path / "runs" / "toy" / name
        write_atomic(site / "_build" / "html" / "index.html", name.encode())
        published.seal_site(site)
    monkeypatch.setattr(command, "repository_root", lambda: tmp_path)
    monkeypatch.setattr(command, "die_with_parent", lambda: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def taken():
    """Listen on a port of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield one.getsockname()[1]


@pytest.mark.parametrize(("solutions", "shown"), [(True, "site"), (False, "public")])
def test_the_site_that_was_asked_for_is_shown(root, solutions, shown):
    with command._server(root, "toy", 0, solutions) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as answer:
            assert answer.read().decode() == shown
        server.shutdown()


@pytest.mark.parametrize("given", ["--profile=none", "--profile=../../x", "--solutions=no", "--port=taken"])
def test_what_cannot_be_shown_is_refused_in_one_line(root, taken, given, capsys):
    (root / "runs/toy/public/_build/html/index.html").write_text("with solutions")
    assert command.main(["serve", "--profile=toy", given.replace("taken", str(taken))]) > 0
    said = capsys.readouterr().err
    assert said.startswith(("refused: ", "failed: ")) and said.count("\n") == 1
