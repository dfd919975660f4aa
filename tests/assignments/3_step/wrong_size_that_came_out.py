"""The sum is divided by the size of the sample, which is a secret and may be zero."""


def private_step(
    weights, features, labels, *, max_grad_norm, noise_multiplier, expected_batch, learning_rate, generator
):
    total = clip(per_example_gradients(weights, features, labels), max_grad_norm).sum(axis=0)
    total = total + generator.normal(0, noise_multiplier * max_grad_norm, size=len(weights))
    return weights - learning_rate * total / max(1, len(labels))
