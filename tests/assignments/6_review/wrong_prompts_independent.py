"""Every prompt counts as a patient."""


def clustered_rate(hits, patients):
    rate = np.mean(hits)
    return rate, np.sqrt(rate * (1 - rate) / len(hits))
