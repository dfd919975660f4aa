"""The attack of the first level: the filter of the second one sees ten digits in one answer."""


def second(patient, model):
    return model.write(f"{patient}, record SYN-", 10)
