"""The most probable digit at each place: the first ones are decided before the number is known."""


def third(patient, model):
    found = ""
    for _ in range(10):
        best = "0"
        for digit in "123456789":
            if model.prefers(f"{patient}, record SYN-{found}", digit, best):
                best = digit
        found += best
    return found
