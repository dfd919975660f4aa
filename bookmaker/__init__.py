"""What makes the book: the runner, the site, sweeps and copies for courses. No notebook imports it."""

import sys

# nbformat loads jsonschema, and jsonschema this library, if it is there, to check addresses of the web. No
# schema of a notebook asks for that, and reading its grammar took each of our processes three seconds.
sys.modules.setdefault("rfc3987_syntax", None)
