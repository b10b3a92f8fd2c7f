"""Rules that find settings which are valid and likely mistakes: what they are, what to do, what can be mended.

rule.py           what a rule and a finding are
state_rules.py    TTLs (HP2xx)          edit_rules.py     edits, hints, reasons (HP1xx)
wait_rules.py     waiting (HP3xx)       unused_rules.py   tables and options (HP1xx)
registry.py       all rules by id       ignores.py        what a project has decided to live with
check.py          from a text to findings with their places, and the fixes
run.py            files of plans, ignores applied         report.py   what is printed
command.py        ``hintplan lint``
"""
