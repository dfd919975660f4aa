"""Attacks on a trained model, each with its never-trained control.

`extraction` prompts the model and matches identifiers, `canaries` measures exposure and verbatim recall,
`membership` asks of each note whether it was trained on.
"""
