"""The average is clipped, not each gradient: one patient can still move it as far as the others let it."""


def clip(gradients, max_norm):
    if not len(gradients):
        return gradients
    average = gradients.mean(axis=0)
    norm = np.linalg.norm(average)
    return np.tile(average * min(1, max_norm / max(norm, 1e-300)), (len(gradients), 1))
