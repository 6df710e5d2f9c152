"""A fleet of real Debian hosts in network namespaces of this one machine.

A *run* owns everything: a token in every name, a directory, one cgroup subtree, one namespace for
each network. What a run makes, it makes under its token, so that the reaper can end all of it by
the token alone, whatever became of the process that made it.
"""
