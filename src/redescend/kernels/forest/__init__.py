"""Rolling boosted trees, compiled: forests that are grown anew, tree by tree, on the last records of a stream.

`layout` declares the state, `bins` codes features by quantiles, `growing` grows one tree, `rounds` predicts a record
and learns from it, `mixture` weighs the members of a non-linear model by Bayes' rule. Python calls `rounds.learn`,
`rounds.predict` and `mixture.mix`.
"""
