"""``hintplan bundle``: a plan, the code that runs it and what that code needs, in one archive for clusters."""
