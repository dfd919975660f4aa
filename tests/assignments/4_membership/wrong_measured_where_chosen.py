"""The threshold is measured on the people whom it was chosen on."""


def advantage(scores, members, half):
    def at(threshold, where):
        called = scores >= threshold
        return called[where & members].mean() - called[where & ~members].mean()

    return max(at(threshold, half) for threshold in np.unique(scores[half]))
