"""Which questions are asked in turn by one process: those that the same thing may hang.

A folder on a dead mount, a directory service behind sudo, a manager that does not answer: whoever
waits for it loses its answer, and so would the others of its row.
"""

# The kernel about itself, and small files of the system's: nothing hangs.
KERNEL = "kernel"
# What root sees, reached through sudo.
ROOT = "root"
# Who the user is, and the files below the home.
HOME = "home"
# The two service managers.
SYSTEM_MANAGER = "system manager"
USER_MANAGER = "user manager"
