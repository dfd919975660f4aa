"""A table as a Parquet file."""

import io
import json

import pandas as pd
from arro3.io import infer_json_schema, read_json, write_parquet


def parquet(frame: pd.DataFrame) -> bytes:
    """Return a table as a Parquet file, without its index."""
    rows = "\n".join(json.dumps(row, ensure_ascii=False) for row in frame.to_dict("records")).encode()
    write_parquet(read_json(io.BytesIO(rows), infer_json_schema(io.BytesIO(rows))), out := io.BytesIO())
    return out.getvalue()
