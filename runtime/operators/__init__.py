"""The kernels of operators, one file each: pure functions over Arrow tables and stored segments.

:mod:`hintplan.runtime.builders` binds kernels to the operators of a plan, and Spark sends the bound kernels to the
workers.
"""
