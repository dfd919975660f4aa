"""The sensitivity of replacing a patient, where one is added or removed."""


def sum_sensitivity(lower, upper):
    return upper - lower
