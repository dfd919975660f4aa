"""Each of the two answers gets the whole budget."""


def noisy_sum_and_count(waits, lower, upper, epsilon, generator):
    total = np.clip(waits, lower, upper).sum()
    largest = sum_sensitivity(lower, upper)
    return (
        laplace_mechanism(total, largest, epsilon, generator),
        laplace_mechanism(len(waits), 1, epsilon, generator),
    )
