package hosts

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

var errDaemonURI = errors.New("not the URI of a daemon of Open MPI")

// ParseDaemonURI reads how Open MPI's daemons name one of themselves: OMPI_MCA_orte_hnp_uri of Open
// MPI 4, prte_hnp_uri and PMIX_SERVER_URI4 of 5. It gives at least one address: all those of its
// host in the order of the interfaces, docker0's included, which may be the same on every host.
//
//	1981022208.0;tcp://172.17.0.1,10.77.0.11,10.78.0.11:44245
//	prterun-node1-26213@0.0;tcp://172.17.0.1,10.77.0.11:49133:16,24
//	prterun-node1-26213@0.1;tcp4://127.0.0.1:39457
//	1981022208.0;tcp6://[fd00::1,fd00::2]:44245
//
// The numbers at the end are the lengths of the networks' prefixes. Inside sbatch the whole may be
// in quotes.
func ParseDaemonURI(text string) ([]netip.AddrPort, error) {
	name, rest, ok := strings.Cut(strings.Trim(text, `"'`), ";")
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 1 {
		return nil, errDaemonURI
	}
	if _, err := strconv.ParseUint(name[dot+1:], 10, 32); err != nil {
		return nil, errDaemonURI
	}
	var list []netip.AddrPort
	for contact := range strings.SplitSeq(rest, ";") {
		scheme, where, ok := strings.Cut(contact, "://")
		if ok && strings.HasPrefix(scheme, "tcp") {
			list = append(list, parseAddresses(where)...)
		}
	}
	if len(list) == 0 {
		return nil, errDaemonURI
	}
	return list, nil
}

func parseAddresses(where string) []netip.AddrPort {
	hosts, rest, ok := strings.Cut(where, ":")
	if strings.HasPrefix(where, "[") {
		hosts, rest, ok = strings.Cut(where[1:], "]:")
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
