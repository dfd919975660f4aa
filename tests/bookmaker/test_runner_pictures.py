"""Pictures get lighter, not different."""

import base64
import io

import numpy as np
from nbformat import v4
from PIL import Image

from bookmaker.runner import _pictures
from privhelpers import figures


def curve():
    return figures.bands(
        [1, 2, 3], {"spent": [0.1, 0.2, 0.3]}, xlabel="step", ylabel="epsilon", reference=1.0
    )


def png(figure):
    place = io.BytesIO()
    figure.savefig(place, format="png", dpi=200)
    return place.getvalue()


def pixels(data):
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def test_a_figure_is_less_than_half_as_large_and_looks_the_same():
    old = png(curve())
    new = _pictures.lighter(old)
    assert len(new) < 0.6 * len(old)
    apart = np.abs(pixels(new) - pixels(old))
    assert apart.mean() < 0.1 and (apart > 32).mean() < 0.001
    with Image.open(io.BytesIO(old)) as before, Image.open(io.BytesIO(new)) as after:
        assert before.size == after.size and before.info["dpi"] == after.info["dpi"]


def test_the_same_picture_gives_the_same_bytes_and_is_done_once():
    old = png(curve())
    new = _pictures.lighter(old)
    assert _pictures.lighter(old) == new and _pictures.lighter(new) == new


def test_a_picture_that_would_grow_is_left_alone():
    place = io.BytesIO()
    Image.new("L", (3, 3), 255).save(place, "PNG")
    assert len(_pictures.lighter(place.getvalue())) <= len(place.getvalue())


def test_transparent_places_become_white():
    place = io.BytesIO()
    image = Image.effect_noise((200, 200), 60).convert("RGBA")
    image.putalpha(0)
    image.save(place, "PNG")
    assert (pixels(_pictures.lighter(place.getvalue())) == 255).all()


def test_only_pictures_of_a_notebook_change():
    old = png(curve())
    shown = {"image/png": base64.b64encode(old).decode(), "text/plain": "a figure"}
    cell = v4.new_code_cell("x", execution_count=1)
    cell.outputs = [
        v4.new_output("display_data", shown),
        v4.new_output("display_data", {"image/png": "no picture"}),
        v4.new_output("stream", text="words"),
    ]
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("words"), cell])
    _pictures.lighten(notebook)
    first, second, third = cell.outputs
    assert base64.b64decode(first.data["image/png"]) == _pictures.lighter(old)
    assert first.data["text/plain"] == "a figure"
    assert second.data["image/png"] == "no picture" and third.text == "words"
