"""The epsilon of one step in place of the run's."""


def epsilon_of_run(noise_multiplier, steps, delta):
    rho = 1 / (2 * noise_multiplier**2)
    return rho + 2 * np.sqrt(rho * np.log(1 / delta))
