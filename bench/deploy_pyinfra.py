"""What pyinfra is given to do: as few operations as an attentive user would write."""

from pyinfra import host
from pyinfra.operations import files, systemd

data = host.data
files.directory(path=data.env_folder, mode="755")
files.put(src=data.env_source, dest=data.env_file, mode="600")
unit = files.put(src=data.unit_source, dest=data.unit_file, mode="644")
systemd.daemon_reload(_if=unit.did_change)
systemd.service(service=data.service, running=True, enabled=True)
