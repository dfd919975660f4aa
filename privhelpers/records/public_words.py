"""Words of the public corpus. The hospitals' phrases use many of them, in combinations that are not here."""

from privhelpers.records.vocabulary import ALL_CONDITIONS, MEDICATIONS

ILLNESSES = (*ALL_CONDITIONS, "Anemia", "Bronchitis", "Eczema", "Gout", "Hepatitis", "Insomnia", "Psoriasis", "Sinusitis", "Stroke", "Pneumonia", "Kidney Stones", "Lupus", "Glaucoma", "Vertigo")  # fmt: skip
DRUGS = (*MEDICATIONS, "Aspirin", "Prednisone", "Warfarin", "Insulin", "Furosemide", "Losartan", "Cetirizine", "Amoxicillin", "Naproxen", "Citalopram")  # fmt: skip
OPENERS = ("", "", "", "Clinic note: ", "Summary, ", "Chart Review - ", "Visit: ", "Medical Record - ", "Clinical Note: ", "Letter. ", "Handover: ")  # fmt: skip
LABELS = {
    "name": ("Patient", "Patient name", "Name", "Full name", "Record for", "Patient Profile", ""),
    "dob": ("DOB", "Date of birth", "Born", "dob"),
    "mrn": ("MRN", "Medical Record Number", "Record number", "Record"),
    "ssn": ("SSN", "Social security number", "Social security"),
    "phone": ("Phone", "Tel", "Contact", "Call", "Emergency contact"),
    "email": ("Email", "Mail", "Contact", "Contact information", "Patient contact"),
    "address": ("Address", "Home address", "Lives at"),
    "condition": (
        "Diagnosis",
        "Assessment",
        "Problem",
        "diagnosed with",
        "Presents with",
        "Impression",
        "",
        "",
    ),
    "drug": ("Medication", "Prescribed", "Drug", "Treatment plan includes", "Plan", "Current medication", ""),
    "test": ("Procedure", "Test", "Ordered", "Recent procedure", "Next", ""),
    "pressure": ("BP", "Blood pressure", "Pressure"),
    "pulse": ("pulse", "Pulse", "Heart rate"),
    "weight": ("Weight", "weight", "Wt"),
    "height": ("Height", "height"),
}
PLACES_FIRST = tuple("Cedar Harbor Lantern Orchard Mill Short North South East West Lake Maple Tower Gate River Garden Day Hill Oak Rose Park Stone Pine Long Main Upper Bridge Field".split())  # fmt: skip
PLACES_SECOND = ("Ward", "Unit", "Bay", "Room", "Stay", "Wing", "Clinic", "Lounge", "Hall")
TITLES = ("Dr", "NP", "Nurse", "Dr")
STAFF_NAMES = tuple("Vale Thorn Brook Frost Heath Lane Ash Dale Pike Moor Holt Crane Wells Glen Banks Winter Page Cole Reed Ford Price Bell Grant Fox King Green Webb Marsh Stone Field".split())  # fmt: skip
NOUNS = tuple(
    """cuff diary team foot check meter book sample bell line number card fridge spacer lesson window supper
    pillow room tea coffee stick stair rail blinds water jug ice pack mask strap bag inhaler hand bath ring finger
    folder clinic bus desk floor noon slip note doctor night watch week round wrist log sugar sheet door breakfast
    plan chart group lake flow grid bed block mints breath tape month heat pad chair glasses screen time chin fan
    walk ball letter center form morning day call visit nurse van ramp tower harbor mill garden salt bread soup
    rest sleep pain cough skin shoe coat lamp clock table list pen label scale belt sock towel cup tray spoon
    shelf key phone map path hour minute year home family friend child school work road bridge park bench tree
    color signal band step turn bottle tablet dose box kit kettle curtain blanket mirror radio paper news""".split()
)
ADJECTIVES = tuple(
    """early calm quiet red green blue yellow warm cold soft dark slow short long new old spare rare monthly
    weekly daily front far near clean dry fresh small large heavy light safe plain second third final next last
    fasting night morning own upper lower left right open half full empty free gentle regular simple extra""".split()
)
VERBS = tuple(
    """shown done copied taken put given moved raised offered fitted ordered packed changed washed measured sent
    mailed kept seen gone brought signed pinned joined drawn placed stopped lent loaned made cut tried timed squeezed
    asked called passed booked filed logged counted opened closed held fixed turned filled shared read told walked
    came stays needed due started ended planned noted reviewed weighed rested paused repeated learned""".split()
)
PREPOSITIONS = (*"to on in by with from before after at for over near beside under until during down up".split(), "instead of", "up from")  # fmt: skip
SENTENCES = (
    "People with {illness} should talk to a clinician before they change a treatment.",
    "{drug} is a medicine for adults; nausea and headache are among its side effects.",
    "A {test} helps clinicians to find the cause of a symptom.",
    "{illness} often brings tiredness, pain or poor sleep.",
    "A {test} may be ordered when {illness} is suspected.",
    "About {number} in a hundred adults with {illness} felt better after some weeks.",
    "In a study of {many} adults with {illness}, {number} percent took {drug}.",
    "Take {drug} {dose} with food unless a pharmacist says otherwise.",
    "A blood pressure of {pressure} should be measured again within {number} days.",
    "The clinic opens on weekdays; ask at the front desk of {place}.",
    "Two doses of {drug} must never be taken at the same time.",
    "{staff} explains on {place} what {illness} is and what a {test} shows.",
    "Stress, smoke and too little sleep can make {illness} worse.",
    "Discharge letters name the plan, the last test and whom to call.",
)
FACTS = (
    "A walk after supper helps many people to sleep.",
    "Water before noon and less salt are good habits.",
    "A diary of pressure readings is useful at a visit.",
    "Nurses write down weight, height and pulse on every round.",
    "Teams meet each morning to go over the plan of the day.",
    "A home visit can be booked by phone.",
    "Bring your own list of medicines to every clinic.",
    "The bus stops near the harbor and the mill.",
    "Breathing slowly for a few minutes calms the pulse.",
    "Warm water eases stiff fingers in the morning.",
    "Letters are mailed to your own doctor within two weeks.",
    "A spare inhaler belongs in the bag and one at home.",
    "Stay one night if the nurse wants to watch you, then go home with a slip.",
    "Children's visits are short and held in the garden room.",
)
