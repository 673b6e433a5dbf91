package hosts

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

var errDaemonURI = errors.New("malformed URI of an Open MPI daemon")

// ParseDaemonURI parses the contact information of an Open MPI daemon: OMPI_MCA_orte_hnp_uri of
// Open MPI 4, prte_hnp_uri and PMIX_SERVER_URI4 of Open MPI 5. It returns at least one address.
// They are those of all interfaces of the daemon's host, including interfaces such as docker0,
// whose address may be the same on every host.
//
//	1981022208.0;tcp://172.17.0.1,10.77.0.11,10.78.0.11:44245
//	prterun-node1-26213@0.0;tcp://172.17.0.1,10.77.0.11:49133:16,24
//	prterun-node1-26213@0.1;tcp4://127.0.0.1:39457
//	1981022208.0;tcp6://[fd00::1,fd00::2]:44245
//
// The numbers after the port are the prefix lengths of the networks. Inside sbatch the URI may be
// quoted.
func ParseDaemonURI(text string) ([]netip.AddrPort, error) {
	name, rest, ok := strings.Cut(strings.Trim(text, `"'`), ";")
	dot := strings.LastIndexByte(name, '.')
	_, err := strconv.ParseUint(name[dot+1:], 10, 32)
	if !ok || dot < 1 || err != nil {
		return nil, errDaemonURI
	}
	var list []netip.AddrPort
	for part := range strings.SplitSeq(rest, ";") {
		scheme, addresses, ok := strings.Cut(part, "://")
		if ok && strings.HasPrefix(scheme, "tcp") {
			list = append(list, parseAddresses(addresses)...)
		}
	}
	if len(list) == 0 {
		return nil, errDaemonURI
	}
	return list, nil
}

// parseAddresses parses HOST,HOST:PORT or [HOST,HOST]:PORT, with anything after a further colon. It
// returns nil if the text is malformed.
func parseAddresses(text string) []netip.AddrPort {
	hosts, rest, ok := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		hosts, rest, ok = strings.Cut(text[1:], "]:")
	}
	digits, _, _ := strings.Cut(rest, ":")
	port, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || port == 0 {
		return nil
	}
	var list []netip.AddrPort
	for host := range strings.SplitSeq(hosts, ",") {
		if a, err := netip.ParseAddr(host); err == nil && !a.IsUnspecified() {
			list = append(list, netip.AddrPortFrom(a.Unmap(), uint16(port)))
		}
	}
	return list
}
