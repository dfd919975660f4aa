"""The end of the last interval that spends a little too much."""


def noise_for(target_epsilon, sample_rate, steps, delta):
    orders = np.arange(2, 65)
    low, high = 0.3, 50.0
    while high - low > 0.0005:
        middle = (low + high) / 2
        step = [sampled_rdp(int(a), middle, sample_rate) for a in orders]
        if epsilon_of(steps * np.array(step), orders, delta) <= target_epsilon:
            high = middle
        else:
            low = middle
    return low
