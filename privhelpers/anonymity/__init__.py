"""Tables that hide people in groups: generalization, k, l and t, and the attacks that each notion misses.

    k_anonymity(table, ["age", "zip_code"])                         # smallest class
    entropy_l_diversity(table, ["age", "zip_code"], "condition")    # least diverse class
    homogeneity(table, "condition", {"age": 31, "zip_code": "13222"})

Values are compared without regard to case and white space everywhere in this room: "Viral infection" and
"Viral  Infection" are one value. A spelling mistake is not diversity.
"""

from privhelpers.anonymity.attacks import (
    Conclusion,
    background,
    candidates,
    composition,
    homogeneity,
    similarity,
)
from privhelpers.anonymity.generalization import (
    ANY,
    climb,
    covers,
    generalize,
    keep_digits,
    ranges,
    truthful,
)
from privhelpers.anonymity.measures import (
    class_report,
    discernibility,
    distinct_l_diversity,
    entropy_l_diversity,
    equivalence_classes,
    information_loss,
    k_anonymity,
    normalized,
    ordered_distance,
    t_closeness,
    total_variation,
)
from privhelpers.anonymity.people import (
    ExpectedShare,
    Linkage,
    cell_probabilities,
    expected_share,
    funnel,
    link,
    release_shares,
    share_in_small_classes,
    town,
)

__all__ = [
    "ANY",
    "Conclusion",
    "ExpectedShare",
    "Linkage",
    "background",
    "candidates",
    "cell_probabilities",
    "class_report",
    "climb",
    "composition",
    "covers",
    "discernibility",
    "distinct_l_diversity",
    "entropy_l_diversity",
    "equivalence_classes",
    "expected_share",
    "funnel",
    "generalize",
    "homogeneity",
    "information_loss",
    "k_anonymity",
    "keep_digits",
    "link",
    "normalized",
    "ordered_distance",
    "ranges",
    "release_shares",
    "share_in_small_classes",
    "similarity",
    "t_closeness",
    "total_variation",
    "town",
    "truthful",
]
