"""A sample whose size is no chance: the accountant counts on another."""


def poisson_sample(size, sample_rate, generator):
    count = int(sample_rate * size)
    return np.sort(generator.choice(size, count, replace=False))
