"""The first number that the model writes, which is some number and not this patient's."""


def first(patient, model):
    import re

    return (re.findall("[0-9]{10}", model.write("Patient ")) or [""])[0]
