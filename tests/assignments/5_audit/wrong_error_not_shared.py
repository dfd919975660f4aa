"""Both limits get the whole error: the bound is wrong up to twice as often as it says."""


def epsilon_lower(hits, ins, false_alarms, outs, delta, error):
    low, _ = limits(hits, ins, error)
    _, high = limits(false_alarms, outs, error)
    return max(0.0, np.log((low - delta) / high)) if low > delta else 0.0
