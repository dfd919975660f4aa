"""Many runs of the chain in one schedule, and everything they measured in one table.

cells = grid.cells("smoke", architectures=["tiny-gpt2"], seeds=[0, 1])
grid.write(root, cells, epsilons=[1, 8])          # one small profile for each cell
results.write(root, cells, path)                  # results.parquet, one row a measurement
"""
