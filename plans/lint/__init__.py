"""Rules that find settings which are valid but likely mistakes, and fixes for some of them.

rule.py           a rule and its findings
state_rules.py    TTLs (HP2xx)          edit_rules.py     edits, hints, reasons (HP1xx)
loss_rules.py     data loss (HP2xx)     unused_rules.py   tables and options (HP1xx)
double_rules.py   double state (HP2xx)  wait_rules.py     waiting (HP3xx)
registry.py       all rules by id       ignores.py        findings that a project accepts
check.py          the check of the text of one plan, and its fixes
run.py            the check of plan files, with ignores   report.py   the report in its formats
"""
