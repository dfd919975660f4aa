"""The best threshold on the same answers: the luckiest bound of eleven."""


def audit(with_patient, without_patient, delta, error):
    ins, outs = np.asarray(with_patient), np.asarray(without_patient)
    return max(
        epsilon_lower(int((ins >= one).sum()), len(ins), int((outs >= one).sum()), len(outs), delta, error)
        for one in np.arange(38.0, 43.5, 0.5)
    )
