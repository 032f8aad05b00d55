"""The compiled round of the self-tuning learner, in its four parts.

`noise` is the posterior over how clean records look, `followers` take implicit steps and `newton` second-order ones,
`kept` are hypotheses that do not move, `bayes` decides who is played; `judging` is what they all say of one record, and
`rounds` puts them together.
"""
