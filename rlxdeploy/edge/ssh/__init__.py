"""SSH as OpenSSH does it.

`ssh -G` decides who, where, through whom and with which keys (`route`); fabric or the OpenSSH
client connects (`fabric_client`, `openssh_client`; `needs` and `clients` tell which); `links` keeps
one connection a host and one a bastion, begun by `turns`.  Nothing is ever asked of a terminal:
every session runs in a thread, and thirty-two prompts at once help nobody.
"""
