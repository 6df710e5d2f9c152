"""The deployer's only contact with the world: files, processes, SSH, sockets and clocks."""
