"""`make serve` shows the site that was asked for, whole, or says in one line why it does not."""

import socket
import threading
import urllib.request

import pytest

from bookmaker.runner import published
from bookmaker.site import __main__ as command
from privhelpers.artifacts import write_atomic
from privhelpers.errors import DamagedArtifact, InvalidParameter


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
def free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number = taken.getsockname()[1]
    return number


def shown(root, number, solutions):
    with command._server(root, "toy", number, solutions) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{number}/") as answer:
            text = answer.read().decode()
        server.shutdown()
    return text


def test_the_site_that_was_asked_for_is_shown(root, free):
    assert (shown(root, free, True), shown(root, free, False)) == ("site", "public")


def test_the_first_chapters_are_shown_while_the_rest_is_made(root, free):
    (root / "runs/toy/site/.complete").unlink()
    (root / "runs/toy/site" / published.FIRST).touch()
    assert shown(root, free, True) == "site"


def test_a_site_that_changed_and_a_port_that_is_taken_are_refused(root, free):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free))
        with pytest.raises(InvalidParameter, match=rf"PORT={free}"):
            command._server(root, "toy", free, True)
    (root / "runs/toy/public/_build/html/index.html").write_text("with solutions")
    with pytest.raises(DamagedArtifact, match="SOLUTIONS=no"):
        command._server(root, "toy", free, False)


@pytest.mark.parametrize("profile", ["none", "../../x", "toy"])
def test_without_a_finished_site_the_command_says_what_to_run(root, profile, capsys):
    (root / "runs/toy/site/.complete").unlink()
    assert command.main(["serve", "--profile", profile, "--port", ""]) == 2
    said = capsys.readouterr().err
    assert said.startswith("refused: ") and said.count("\n") == 1


@pytest.mark.parametrize("given", ["--port=99999", "--port=-1", "--port=x", "--solutions=No"])
def test_what_is_no_choice_is_refused(root, given, capsys):
    with pytest.raises(SystemExit) as refused:
        command.main(["serve", "--profile=toy", given])
    assert refused.value.code == 2 and given.partition("=")[0] in capsys.readouterr().err
