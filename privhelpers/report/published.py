"""What the report prints, as data: nothing here is a result of this book.

Models are named by their budget; `"baseline"` has none. Sections are those of the report.
"""

from types import MappingProxyType

RECORDS, PROMPTS, TEXTS = 50, 14, 2  # attack settings, section 6.3
ATTEMPTS = 1400
BUDGETS = (0.5, 1.0, 5.0, 10.0)
DELTA = 1e-5
TRAINING, BATCH, EPOCHS = 1500, 4, 5  # samples, mini-batch, epochs: sections 5.1.3 and 6.2.2
STEPS = 1875  # section 15.2
RUN = MappingProxyType({"sample_rate": BATCH / TRAINING, "steps": STEPS, "delta": DELTA})

LEAKS = MappingProxyType({"baseline": 256, 0.5: 14, 1.0: 15, 5.0: 13, 10.0: 5})  # section 7.1
RATES = MappingProxyType({"baseline": 17.79, 0.5: 1.00, 1.0: 1.07, 5.0: 0.93, 10.0: 0.36})  # percent, 7.1
DETAILED_RATE = 18.29  # percent, section 7.2.1, same model
REDUCTIONS = MappingProxyType({0.5: 94.4, 1.0: 94.0, 5.0: 94.8, 10.0: 98.0})  # percent, section 7.3.2
CATEGORIES = MappingProxyType(  # section 7.2.3
    {
        "baseline": {"name": 45, "diagnosis": 128, "medication": 92, "dob": 11, "email": 1},
        0.5: {"name": 5, "diagnosis": 3, "medication": 0, "dob": 6, "email": 0},
        1.0: {"name": 10, "diagnosis": 2, "medication": 0, "dob": 3, "email": 0},
        5.0: {"name": 6, "diagnosis": 6, "medication": 1, "dob": 0, "email": 0},
        10.0: {"name": 2, "diagnosis": 2, "medication": 0, "dob": 1, "email": 0},
    }
)
DIRECT_IDENTIFIERS = MappingProxyType({"baseline": 57, 0.5: 11, 1.0: 13, 5.0: 6, 10.0: 3})  # section 19.2

# Section 7.1 and, for the second baseline, 7.2.1: leaking attempts, then the printed risk in percent.
RISKS = ((249, 37.61), (256, 37.81), (14, 30.40), (15, 30.43), (13, 30.37), (5, 30.14))
RISK_WEIGHTS = MappingProxyType({"prompt": 0.50, "membership": 0.20, "canary": 0.15, "exact": 0.15})  # 5.4.3
CANARY_RATE, MEMBERSHIP_RATE = 100.0, 0.0  # percent, of every model
EXACT_RATES = MappingProxyType({"baseline": 5.0, "DP": 0.0})  # percent, of 20
EXACT_TRIALS, CANARIES = 20, 15

PERPLEXITY = MappingProxyType({"baseline": 1.14, 0.5: 9643.91, 1.0: 7241.94, 5.0: 286.31, 10.0: 22.70})
TIMES_BASELINE = MappingProxyType({0.5: 8459, 1.0: 6351, 5.0: 251, 10.0: 20})  # section 7.3.1
TIMES_NEXT = MappingProxyType({(10.0, 5.0): 12.0, (5.0, 1.0): 25.0, (1.0, 0.5): 1.3})  # section 9.1

PAIRS = MappingProxyType({38.34: 0.5060, 19.22: 1.0202, 4.21: 5.0112, 2.2829: 9.9438})  # 5.3.4, 15.3
EPSILON_LOG = (1.9889, 3.9778, 5.9667, 7.9556, 9.9438)  # after each epoch, section 15.3
TRAINING_LOSS = 0.0031  # of the baseline, mean of the last epoch, nats a token, section 15.2
LOSS_LOG = (9.4521, 8.1234, 6.8901, 5.3421, 3.1234)  # same
PARAMETERS = 124_000_000  # sections 3.1 and 6.2.1

CHI_SQUARED, COHENS_H, SQUARE_ROOTS = 287.4, 0.757, (0.877, 0.120)  # section 18
WALD = MappingProxyType({"baseline": (15.79, 19.79), 10.0: (0.05, 0.67)})  # percent, section 18.3
HEADLINE_RATES = (0.1779, 0.0036)  # section 18.2

MINUTES = MappingProxyType(  # section 20.4: stage, times it runs, CPU minutes, GPU minutes
    {
        "baseline training": (1, 75, 15),
        "baseline attacks": (1, 20, 5),
        "private training": (4, 225, 45),
        "private attacks": (4, 20, 5),
        "evaluation": (1, 5, 2),
    }
)
HOURS = (14, 3)

CONDITIONS = (  # section 14.1.1
    "Type 2 Diabetes", "Hypertension", "Asthma", "Depression", "Anxiety Disorder", "Osteoarthritis",
    "Migraine", "GERD", "High Cholesterol", "Sleep Apnea", "COPD", "Arthritis",
)  # fmt: skip
MEDICATIONS = (
    "Metformin", "Lisinopril", "Albuterol", "Sertraline", "Atorvastatin", "Omeprazole",
    "Levothyroxine", "Amlodipine", "Metoprolol", "Gabapentin", "Tramadol", "Ibuprofen",
)  # fmt: skip
TEMPLATES = (  # which fields stand in each of the six, section 14.1.2
    ("name", "dob", "mrn", "condition", "medication", "email", "phone"),
    ("name", "dob", "condition", "medication", "blood_pressure", "address"),
    ("name", "mrn", "condition", "medication", "procedure", "email", "phone"),
    ("name", "ssn", "condition", "height", "weight", "medication", "phone"),
    ("name", "dob", "condition", "medication", "email", "address"),
    ("name", "mrn", "condition", "medication", "procedure", "phone", "email"),
)
FIELDS_PER_RECORD = 13  # section 5.1.3
CHECKED = ("name", "email", "ssn", "phone", "diagnosis", "medication")  # the printed rule, section 5.4.2
COUNTED = (*CHECKED, "mrn", "dob")  # the printed results, section 7.2.1
SEED, BIRTHDAY = 42, "1989-07-01"  # appendix A; of the first patient, appendix B
