"""A normal approximation, which is certain where nothing was hit."""


def limits(hits, trials, error):
    from scipy.stats import norm

    rate = hits / trials
    reach = norm.ppf(1 - error) * np.sqrt(rate * (1 - rate) / trials)
    return max(0.0, rate - reach), min(1.0, rate + reach)
