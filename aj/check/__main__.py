"""`python -m aj.check URL`: the same as `aj check URL`."""

from aj.check.command import check

check(prog_name="aj check")
