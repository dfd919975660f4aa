"""k squared in place of k squared minus k."""


def sampled_rdp(order, noise_multiplier, sample_rate):
    from scipy.special import gammaln, logsumexp

    k = np.arange(order + 1)
    terms = (
        gammaln(order + 1)
        - gammaln(k + 1)
        - gammaln(order - k + 1)
        + (order - k) * np.log1p(-sample_rate)
        + k * np.log(sample_rate)
        + k * k / (2 * noise_multiplier**2)
    )
    return logsumexp(terms) / (order - 1)
