"""The exponential mechanism at twice its budget."""


def exponential_probabilities(scores, sensitivity, epsilon):
    exponents = epsilon * np.asarray(scores) / sensitivity
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()
