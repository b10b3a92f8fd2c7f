"""``hintplan bundle``: packs a plan, the code that runs it and its dependencies into an archive for clusters."""
