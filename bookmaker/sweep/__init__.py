"""Many runs of the chain in one schedule, and everything they measured in one table.

cells = _grid.cells("smoke", architectures=["tiny-gpt2"], seeds=[0, 1])
_grid.write(root, cells, _grid.files(root, cells, epsilons=[1, 8]))   # a profile for each cell
_results.collect(root, cells)                                         # results.csv, one row a measurement
"""
