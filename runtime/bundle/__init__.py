"""``hintplan bundle``: packs a plan, the code that runs it and that code's dependencies into an archive for clusters."""
