#!/bin/sh
# Simulates three hosts by the network namespaces gen, q and ps, each with its own sshd, and a head that reaches them by ssh.
# Cables connect gen's gen0 to q's in, and q's out to ps's ps0. The script needs root and openssh-server,
# and olafctl in the PATH. sudo may replace the PATH; 'sudo env "PATH=$PATH" sh namespaces.sh …' keeps it.
#   sh namespaces.sh up              creates them, and ./namespaces/testbed.yaml
#   sh namespaces.sh run olafctl …   runs olafctl on the head
#   sh namespaces.sh down            removes them
set -e
here=$PWD/namespaces
hosts="gen q ps"

up() {
	ip netns add olaf-head # fails if the namespaces exist; remove them with 'down'
	mkdir -p "$here" /run/sshd
	cd "$here"
	ssh-keygen -q -t ed25519 -N '' -f host
	ssh-keygen -q -t ed25519 -N '' -f user
	i=0
	printf 'name: namespaces\nhosts:\n' >testbed.yaml
	for h in $hosts; do
		ip netns add "olaf-$h"
		ip link add "$h" netns olaf-head type veth peer name mgmt netns "olaf-$h"
		ip -n olaf-head addr add "10.55.$i.1/24" dev "$h"
		ip -n "olaf-$h" addr add "10.55.$i.2/24" dev mgmt
		ip -n olaf-head link set "$h" up
		ip -n "olaf-$h" link set mgmt up
		printf '%s\n' "ListenAddress 10.55.$i.2" "HostKey $here/host" "AuthorizedKeysFile $here/user.pub" "PidFile $here/$h.pid" \
			"StrictModes no" "UsePAM no" "PermitRootLogin yes" "PasswordAuthentication no" "SetEnv PATH=$PATH" >"$h.conf"
		ip netns exec "olaf-$h" /usr/sbin/sshd -f "$here/$h.conf"
		echo "10.55.$i.2 $(cat host.pub)" >>known
		echo "  $h: {ssh: root@10.55.$i.2}" >>testbed.yaml
		i=$((i + 1))
	done
	ip link add gen0 netns olaf-gen type veth peer name in netns olaf-q
	ip link add out netns olaf-q type veth peer name ps0 netns olaf-ps
	for end in "gen gen0" "q in" "q out" "ps ps0"; do
		set -- $end
		ip -n "olaf-$1" link set "$2" up
	done
	cat >>testbed.yaml <<-END
	roles:
	  generator: {host: gen, nic: gen0}
	  queue: {host: q, device: "xdp:in,out"}
	  server: {host: ps, interface: ps0}
	END
}

down() {
	for h in $hosts; do
		[ ! -f "$here/$h.pid" ] || kill "$(cat "$here/$h.pid")" || true
		ip netns del "olaf-$h" || true
	done
	ip netns del olaf-head || true
	rm -rf "$here"
}

run() {
	OLAFCTL_SSH="ssh -F none -i $here/user -o UserKnownHostsFile=$here/known" exec ip netns exec olaf-head "$@"
}

"$@"
