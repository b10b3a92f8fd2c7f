"""The kernels of operators: a file each, pure functions over Arrow tables and stored segments.

:mod:`hintplan.runtime.build` binds them to the operators of a plan; what it makes travels to the workers.
"""
