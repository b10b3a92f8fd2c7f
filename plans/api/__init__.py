"""What Python programs get of plans: functions named after the commands, whose results print as the commands do.

``import hintplan`` offers them, beside what compiles and runs plans.
"""
