#!/bin/sh
# Turns a fresh debootstrap tree into the fleet's base image. Runs inside it.
set -eu

for user in ops asks nosudo fish csh; do
    useradd --create-home --shell /bin/bash --password '*' "$user"
done
usermod --shell /usr/bin/fish fish
usermod --shell /bin/csh csh
usermod --append --groups sudo asks
echo 'asks:fleet' | chpasswd
printf '%s ALL=(ALL) NOPASSWD: ALL\n' ops fish csh >/etc/sudoers.d/fleet
chmod 0440 /etc/sudoers.d/fleet

printf 'LogLevel VERBOSE\nPasswordAuthentication no\n' >/etc/ssh/sshd_config.d/fleet.conf
rm -f /etc/ssh/ssh_host_*

# Inside a container /sys still speaks of the outer machine's interfaces.
cat >/usr/local/sbin/fleet-sysfs <<'EOF'
#!/bin/sh
set -e
mkdir -p /run/sys
mount -t sysfs sysfs /run/sys
mount --bind /run/sys/class/net /sys/class/net
mount --bind /run/sys/devices/virtual/net /sys/devices/virtual/net
EOF
chmod 0755 /usr/local/sbin/fleet-sysfs
cat >/etc/systemd/system/fleet-sysfs.service <<'EOF'
[Unit]
Description=Show this host's own network interfaces in /sys
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/fleet-sysfs
[Install]
WantedBy=sysinit.target
EOF
systemctl enable fleet-sysfs.service
systemctl set-default multi-user.target
# Tests that want announcements or timers start them: an idle host costs an idle machine.
systemctl disable avahi-daemon.service avahi-daemon.socket
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    fstrim.timer man-db.timer console-getty.service; do
    systemctl mask "$unit"
done

: >/etc/machine-id
ln -sf /etc/machine-id /var/lib/dbus/machine-id
apt-get clean
rm -rf /var/lib/apt/lists/*
