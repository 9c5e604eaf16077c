"""Fits on a Dask cluster: rows stay with the workers, parameters with the process that fits.

`context` is what a user enters, `rows` the side of the process that fits, `worker` that of the workers,
`engine` all that is asked of Dask, each with a deadline.
"""
