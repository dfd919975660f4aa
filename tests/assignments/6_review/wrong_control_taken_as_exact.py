"""The control is taken for a known number: its own uncertainty is left out."""


def excess(hits, patients, control_hits, control_patients):
    rate, error = clustered_rate(hits, patients)
    above = rate - np.mean(control_hits)
    return above, above - 1.96 * error, above + 1.96 * error
