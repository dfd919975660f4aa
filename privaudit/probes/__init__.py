"""The tests of an audit, one module each.

blind         the two files without the model: can their words, shape, or rarity tell them apart?
membership    attacks on membership by scores of notes, each with its controls
memorization  second halves of notes and strings that name a patient, given back by a model
likeness      synthetic texts compared with notes: the closest text, near copies, word counts
risks         singling out, linkability, and inference from texts
canaries      texts that a coin chose to train on; they alone can refute an epsilon
questions     what a model behind an interface is asked
answers       what its answers give away
counts        affected patients of both groups, in the form that most of these return
"""
