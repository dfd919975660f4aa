"""A tie counts nothing, so that a score which knows nothing looks worse than chance."""


def auc(member_scores, other_scores):
    return np.mean(np.asarray(member_scores)[:, None] > np.asarray(other_scores)[None, :])
