"""The epsilon of the last order, not the smallest of all."""


def epsilon_of(divergences, orders, delta):
    return divergences[-1] + np.log(1 / delta) / (orders[-1] - 1)
