"""The commands of the command line that need neither planner nor runtime, a file each."""
