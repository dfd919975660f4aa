"""Checks parameters, plans the chain of notebooks and runs it; the only room that knows papermill."""
