"""Pictures of a run with as many colors as eyes can tell apart in them, so that pages load fast.

A line drawing with smooth edges has a few hundred shades; with 256 of them, chosen for that picture, its
file is less than half as large. What differs is the shade of single pixels along edges.
"""

import base64
import binascii
import io

from nbformat import NotebookNode
from PIL import Image, UnidentifiedImageError

PNG = "image/png"
COLORS = 256


def lighter(png: bytes) -> bytes:
    """Return a PNG with at most 256 colors, or the same bytes if that is no smaller.

    Args:
        png: an opaque or transparent PNG; transparent places become white, the color of the page in print.
    """
    with Image.open(io.BytesIO(png)) as image:
        if image.mode == "P":
            return png
        opaque = Image.new("RGB", image.size, "white")
        opaque.paste(image.convert("RGB"), mask=image.getchannel("A") if "A" in image.getbands() else None)
        dpi = image.info.get("dpi")
    few = opaque.quantize(COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    place = io.BytesIO()
    few.save(place, "PNG", optimize=True, **({"dpi": dpi} if dpi else {}))
    return min(place.getvalue(), png, key=len)


def lighten(notebook: NotebookNode) -> None:
    """Replace the PNG pictures among a notebook's outputs, in place; what is no picture stays as it is."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if isinstance(data.get(PNG), str):
                try:
                    small = lighter(base64.b64decode(data[PNG]))
                except (binascii.Error, UnidentifiedImageError, OSError):
                    continue  # the site says so, with the place
                data[PNG] = base64.b64encode(small).decode()
