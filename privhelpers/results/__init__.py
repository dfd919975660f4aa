"""The chapters' measurements, read from their artifacts; only this package knows the paths.

runs = Results(store)
runs.of("baseline").membership["auc"]              # the saved figures of one attack on one model
runs.of("baseline").scores("loss")                 # one row a note: member, patient, score
rows = [row for model in models for row in measurements(runs, model)]      # the tidy table
"""

from privhelpers.results.front_page import broken_row, headline, summary_row
from privhelpers.results.reading import ModelResults, Results
from privhelpers.results.tidy import ATTACKS, COLUMNS, attack_name, measurements
from privhelpers.text import in_words
