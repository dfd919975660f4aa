"""Names of models and attacks as a reader says them: files and parameters have their own."""

import re

_MODELS = {"public": "public checkpoint"}
_WORDS = (
    (r"best_nonprivate", "best non-private"),
    (r"dp-eps-(?=\d)", "ε = "),
    (r"min_k_plus_plus", "Min-K%++"),
    (r"min_k", "Min-K%"),
    (r"lira", "LiRA"),
    (r"/sample$", ", by note"),
    (r"/patient$", ", by patient"),
    (r"_", " "),
)


def in_words(name: str) -> str:
    """Return the name of a model or an attack as a table shows it; other texts stay as they are.

    >>> [in_words(name) for name in ("public", "dp-eps-0.5", "min_k_plus_plus", "lira_online/sample")]
    ['public checkpoint', 'ε = 0.5', 'Min-K%++', 'LiRA online, by note']
    """
    if name in _MODELS:
        return _MODELS[name]
    for raw, word in _WORDS:
        name = re.sub(raw, word, name)
    return name
