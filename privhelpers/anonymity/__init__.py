"""Tables that hide people in groups: k, l and t of a table, which rows fit a person, a synthetic town.

    k_anonymity(table, ["age", "zip"])                         # smallest class
    candidates(table, {"age": 31, "zip": "13222"})             # rows that may be the person's

Values are compared without regard to case and white space everywhere in this room: "Viral infection" and
"Viral  Infection" are one value. A spelling mistake is not diversity.
"""

from privhelpers.anonymity._attacks import candidates, composition
from privhelpers.anonymity._measures import (
    class_report,
    distinct_l_diversity,
    k_anonymity,
    t_closeness,
)
from privhelpers.anonymity._people import town
