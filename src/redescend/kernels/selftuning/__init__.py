"""The compiled round of the self-tuning learner.

`noise` is the posterior over the scale of clean records and the rate of outliers, `followers` take implicit steps and
`second_order` Newton steps, `novelty` measures how new features are, `mixture` weights the members and takes snapshots,
`likelihood` combines them for one record, and `rounds` runs the loop; `single` is its entry for one record.
"""
