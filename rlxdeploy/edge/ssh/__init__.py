"""SSH as OpenSSH does it.

`ssh -G` decides who, where, through whom and with which keys (`route`); fabric or the OpenSSH
client connects (`fabric_client`, `openssh_client`; `needs` tells which); `pool` keeps one
connection a host and one a bastion.  Nothing is ever asked of a terminal: every session runs in a
thread, and thirty-two prompts at once help nobody.
"""
