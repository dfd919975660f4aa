"""The small tables of the chapter, as textbooks print them; their people are invented.

>>> len(patients()), len(four_anonymous()), len(three_diverse())
(12, 12, 9)
"""

import pandas as pd

# One parent per value; "Any" is above everything and needs no line.
NATIONALITIES = {"Chinese": "Asian", "Indian": "Asian", "Japanese": "Asian", "Korean": "Asian"}

# What the similarity attack knows about the diseases of `three_diverse`.
DISEASE_KINDS = {
    "Gastric ulcer": "stomach",
    "Gastritis": "stomach",
    "Stomach cancer": "stomach",
    "Flu": "airways",
    "Bronchitis": "airways",
    "Pneumonia": "airways",
}

_PATIENTS = """
Ann,28,F,13053,Russian,Heart disease
Bruce,29,M,13068,Chinese,Heart disease
Cary,21,F,13068,Japanese,Viral infection
Dick,23,M,13053,American,Viral infection
Eshwar,50,M,14853,Indian,Cancer
Fox,55,M,14750,Japanese,Flu
Gary,47,M,14562,Chinese,Heart disease
Helen,49,F,14821,Korean,Flu
Igor,31,M,13222,American,Cancer
Jean,37,F,13227,American,Cancer
Ken,36,M,13228,American,Cancer
Lewis,35,M,13221,American,Cancer
"""
# The printed table writes the same infection in two ways, and so does this one.
_FOUR_ANONYMOUS = """
20-29,Any,130**,Any,Heart disease
20-29,Any,130**,Any,Heart disease
20-29,Any,130**,Any,Viral infection
20-29,Any,130**,Any,Viral Infection
40-59,Any,14***,Asian,Cancer
40-59,Any,14***,Asian,Flu
40-59,Any,14***,Asian,Heart disease
40-59,Any,14***,Asian,Flu
30-39,Any,1322*,American,Cancer
30-39,Any,1322*,American,Cancer
30-39,Any,1322*,American,Cancer
30-39,Any,1322*,American,Cancer
"""
_THREE_DIVERSE = """
306**,2*,20,Gastric ulcer
306**,2*,30,Gastritis
306**,2*,40,Stomach cancer
3162*,40+,50,Gastritis
3162*,40+,100,Flu
3162*,40+,70,Bronchitis
300**,3*,60,Bronchitis
300**,3*,80,Pneumonia
300**,3*,90,Stomach cancer
"""
_FIRST_HOSPITAL = {
    ("M", "20-30", "306**"): "Cancer,Flu,Viral infection,Viral infection",
    ("F", "40-50", "306**"): "Cancer,Heart disease,Heart disease,Flu",
    ("M", "60+", "306**"): "Cancer,Cancer,Cancer,Flu",
}
_SECOND_HOSPITAL = {
    ("M", "20-35", "30***"): "Cancer,Heart disease,Malaria,Heart disease,Tuberculosis,Heart disease",
    ("F", "20-35", "30***"): "Flu,Flu,Flu,Tuberculosis,Viral infection,Cancer",
}


def _frame(text: str, columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame([line.split(",") for line in text.split("\n") if line], columns=columns)


def _hospital(classes: dict[tuple[str, str, str], str]) -> pd.DataFrame:
    rows = [(*quasi, value) for quasi, values in classes.items() for value in values.split(",")]
    return pd.DataFrame(rows, columns=["gender", "age", "zip", "condition"])


def patients() -> pd.DataFrame:
    """Return the twelve invented patients: name, age, gender, zip, nationality, condition.

    Source: after the inpatient table of Machanavajjhala et al. 2007, with invented names.
    """
    columns = ["name", "age", "gender", "zip", "nationality", "condition"]
    return _frame(_PATIENTS, columns).astype({"age": int})


def four_anonymous() -> pd.DataFrame:
    """Return the 4-anonymous version of `patients` as printed, names removed, rows in the same order."""
    return _frame(_FOUR_ANONYMOUS, ["age", "gender", "zip", "nationality", "condition"])


def three_diverse() -> pd.DataFrame:
    """Return nine rows with salary (thousands) and disease, three classes of three different values.

    Source: Li, Li and Venkatasubramanian 2007, for the form of the example.
    """
    return _frame(_THREE_DIVERSE, ["zip", "age", "salary", "disease"]).astype({"salary": int})


def hospitals() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the releases of two hospitals: 4-anonymous and 6-anonymous.

    Source: Ganta, Kasiviswanathan and Smith 2008, for the form of the example.
    """
    return _hospital(_FIRST_HOSPITAL), _hospital(_SECOND_HOSPITAL)
