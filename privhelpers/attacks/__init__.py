"""Attacks on a trained model, each with its never-trained control.

Text out of the model: `extraction` prompts it and matches identifiers, `ranking` finds copied text among what
it writes freely, `memorization` and `canaries` ask what it completes word for word, `attributes` infers a
diagnosis from a name, `case_studies` shows models side by side.

Who was in it: `signals` from one scoring pass, `scores` (two arms, levels, what they achieve, the best of
many), `shadow`, `bank`, `panel`, `lira`, `rmia` and `bavaria` (models trained for comparison), `quantile`
(a regression instead of such models), `groups` (patients, admissions), `battery` (all attacks in one table).

With the weights: `white_box`. From a gradient: `inversion`. Where each must fail: `controls`.
"""
