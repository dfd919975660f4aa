"""The report's experiment: its data, its model, its hours, its sources."""

import math
from datetime import date

from privhelpers.accounting import PRINTED_ORDERS
from privhelpers.report import null_model, published
from privhelpers.report.claims import (
    CONTRADICTS,
    HOLDS,
    UNMEASURED,
    UNSUPPORTED,
    WRONG,
    Finding,
    Topic,
    agrees,
    listed,
)
from privhelpers.report.noise import gpt2_parameters

TOPIC = Topic("design", document="the report")
# Lower estimates of the entropy of a generated field, in nats; an inference, see `perplexity_floor`.
NATS = {
    "name": math.log(690 * 1000),
    "dob": math.log(68 * 365),
    "mrn": math.log(900_000),
    "ssn": math.log(899 * 99 * 9999),
    "phone": math.log(1e9),
    "email": math.log(26 * 1000 * 3),
    "address": math.log(9_000 * 1000 * 50 * 40_000),
    "condition": math.log(12),
    "medication": math.log(12),
    "procedure": math.log(10),
    "blood_pressure": math.log(31 * 21),
    "height": math.log(15),
    "weight": math.log(80),
}


def perplexity_floor(*, tokens: int, private: int = 45, samples: int = 300) -> float:
    """Return the least perplexity a perfect model can have on the test set, whose values nobody can foresee.

    Args:
        tokens: of a sample, on average; 1 or more.
        private: records with fresh random values.
        samples: in the test set.
    """
    record = sum(sum(NATS[f] for f in fields) for fields in published.TEMPLATES) / len(published.TEMPLATES)
    return math.exp(private * record / (samples * tokens))


@TOPIC.claim("data-sums", where="5.1.3", says="The parts of the data add up.", published="1500 and 300")
def data_sums() -> Finding:
    """They do."""
    train, test = 15 + 225 + 1260, 5 + 45 + 250
    return Finding(
        f"{train} and {test}", HOLDS if (train, test) == (1500, 300) else WRONG, "Right in both columns."
    )


@TOPIC.claim(
    "data-size",
    where="4.3, appendix A against 5.1.3",
    says="The models are trained on 1500 samples, 15 % of them private.",
    published="1500 and 225; elsewhere 2000 and 150",
    severity="B",
)
def data_size() -> Finding:
    """The configuration says otherwise."""
    return Finding(
        f"15 % of 1500 are {0.15 * 1500:.0f}, of 2000 {0.15 * 2000:.0f}; 150 fits neither",
        CONTRADICTS,
        "The sampling rate, and with it every ε, hangs on the size.",
    )


@TOPIC.claim(
    "birthday",
    where="6.1.3, 20, cover",
    says="Seed 42 makes the run reproducible; the project is of fall 2024.",
    published=published.BIRTHDAY,
    severity="B",
)
def birthday() -> Finding:
    """The date of birth follows the clock of the machine."""
    day = null_model.day_of_the_birthday(date.fromisoformat(published.BIRTHDAY))
    then = null_model.birthday_of_the_first(date(2024, 12, 1))
    return Finding(
        f"{then} on 1 December 2024; the printed date appears on {day}",
        UNSUPPORTED if then.isoformat() != published.BIRTHDAY else HOLDS,
        "Faker reads the clock: a seed alone repeats nothing (its date algorithm taken as unchanged).",
        {"year": day.year if day else 0},
    )


@TOPIC.claim(
    "first-patient",
    where="6.1.3 against appendix B",
    says="The text of the first patient.",
    published="template 1; elsewhere template 2",
    severity="C",
)
def first_patient() -> Finding:
    """Two templates for one record."""
    first, second = published.TEMPLATES[0], published.TEMPLATES[1]
    return Finding(
        "two different texts",
        CONTRADICTS if first != second else HOLDS,
        "A record has one text; which one was trained on is unknown.",
    )


@TOPIC.claim(
    "real-numbers",
    where="5.1.1, 4.2.1",
    says="Synthetic identifiers belong to nobody.",
    published="Faker's numbers; a sample number in the issued form",
    severity="A",
)
def real_numbers() -> Finding:
    """Every number could be somebody's."""
    ssns, phones = null_model.could_be_real()
    return Finding(
        f"{ssns} of 225 social security numbers are in the range that is issued, {phones} of 225 telephone "
        "numbers outside the block kept for fiction",
        WRONG if ssns else HOLDS,
        "A synthetic record must use numbers that nobody can have.",
        {"ssns": ssns, "phones": phones},
    )


@TOPIC.claim(
    "steps",
    where="15.2, 5.2.2",
    says="The baseline takes 1875 steps.",
    published="1875",
    severity="B",
)
def steps() -> Finding:
    """These are micro-batches; two make a step."""
    batches = published.TRAINING // published.BATCH
    found = batches // 2 * published.EPOCHS
    return Finding(
        f"{found} optimizer steps",
        HOLDS if found == published.STEPS else WRONG,
        "The learning-rate schedule is made for 1875 and ends half-way.",
        {"steps": found},
    )


@TOPIC.claim(
    "model",
    where="3.1, 6.2.1",
    says="The model is distilgpt2 with 124 million weights in 12 layers.",
    published="124 million",
    severity="B",
)
def model() -> Finding:
    """These are two models."""
    whole, distilled = gpt2_parameters(12), gpt2_parameters(6)
    return Finding(
        f"gpt2: {whole:,} in 12 layers; distilgpt2: {distilled:,} in 6",
        CONTRADICTS if distilled < published.PARAMETERS else HOLDS,
        "It is unclear which model was trained.",
        {"gpt2": whole, "distilgpt2": distilled},
    )


@TOPIC.claim(
    "orders",
    where="14.2.1",
    says="99 + 53 orders, the fine ones from 1.1 to 11.0.",
    published="152; 11.0",
    severity="C",
)
def orders() -> Finding:
    """The count is right, the end is not."""
    last = sorted(PRINTED_ORDERS)[98]
    return Finding(
        f"{len(PRINTED_ORDERS)}; {last}",
        HOLDS if last == 11.0 else WRONG,
        "The largest order of 64 matters more: it puts a floor under ε.",
        {"count": len(PRINTED_ORDERS), "last": last},
    )


@TOPIC.claim(
    "hours",
    where="20.4, 23",
    says="The whole run takes 14 hours on a processor, 3 on a graphics card.",
    published="about 14 and 3 hours; elsewhere 50",
    severity="C",
)
def hours() -> Finding:
    """The column adds up to more."""
    cpu = sum(times * minutes for times, minutes, _ in published.MINUTES.values()) / 60
    gpu = sum(times * minutes for times, _, minutes in published.MINUTES.values()) / 60
    return Finding(
        f"{cpu:.1f} and {gpu:.1f} hours",
        HOLDS if agrees(published.HOURS[0], cpu, 0) else WRONG,
        "The private runs count four times.",
        {"cpu": cpu, "gpu": gpu},
    )


@TOPIC.claim(
    "multiples",
    where="7.3.1, 9.1",
    says="How many times the baseline's perplexity each model has.",
    published="8,459 / 6,351 / 251 / 20; steps of 12, 25 and 1.3",
    severity="C",
)
def multiples() -> Finding:
    """Two roundings are off."""
    base = published.PERPLEXITY["baseline"]
    found = {b: published.PERPLEXITY[b] / base for b in published.BUDGETS}
    right = all(abs(found[b] - published.TIMES_BASELINE[b]) < 1 for b in published.BUDGETS)
    ratios = [published.PERPLEXITY[b] / published.PERPLEXITY[a] for a, b in published.TIMES_NEXT]
    return Finding(
        f"{listed(found.values(), 1)}; {listed(ratios, 2)}",
        HOLDS if right else WRONG,
        "Small; the ratio to an overfitted baseline is the wrong ratio anyway.",
        {"one": found[1.0]},
    )


@TOPIC.claim(
    "usable",
    where="1, 9.1, 22",
    says="A perplexity of 22.70 is good enough for medical text.",
    published="22.70; 25 to 35 for GPT-2 without fine-tuning",
    severity="A",
)
def usable() -> Finding:
    """The untouched model was never measured on this test set."""
    return Finding(
        "no model without fine-tuning was measured on these texts",
        UNMEASURED,
        "If the untouched model does as well, ε = 10 bought no learning; its samples are news, not notes.",
    )


@TOPIC.claim(
    "test-perplexity",
    where="5.2.3, 15.2",
    says="The baseline's perplexity on fresh patients is 1.14.",
    published="1.14",
    severity="B",
)
def test_perplexity() -> Finding:
    """Random values cannot be foreseen (an inference from lower estimates of their entropy)."""
    floors = [perplexity_floor(tokens=tokens) for tokens in (80, 65)]
    return Finding(
        f"{listed(floors, 3)} at 80 and 65 tokens a sample is the least that random values allow",
        UNSUPPORTED if floors[0] > published.PERPLEXITY["baseline"] else UNMEASURED,
        "Padding was scored as well, or test texts had been trained on; an inference.",
        {"floor_80": floors[0], "floor_65": floors[1]},
    )


@TOPIC.claim(
    "sources",
    where="3.6 against 12",
    says="Every cited work is listed.",
    published="10 references",
    severity="C",
)
def sources() -> Finding:
    """Two are not."""
    cited = {"Carlini 2021", "Henderson 2018", "Kandpal 2022", "Abadi 2016", "McMahan 2018", "Yu 2022"}
    cited |= {"Li 2022", "Vaswani 2017"}
    listed_works = {"Abadi 2016", "Carlini 2021", "Dwork 2006", "Dwork 2014", "Henderson 2018"}
    listed_works |= {"McMahan 2018", "Mironov 2017", "Radford 2019", "Vaswani 2017", "Yu 2022"}
    missing = sorted(cited - listed_works)
    return Finding(
        f"missing: {', '.join(missing)}", WRONG if missing else HOLDS, "A reader cannot look them up."
    )
