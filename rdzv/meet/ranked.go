package meet

import (
	"cmp"
	"fmt"
)

// ranked plans for launchers that give a rank and at most the name of rank 0's host: this host,
// that name or MASTER_ADDR, and beacons. Rank 0 hosts whatever the name means on its own host:
// there it may be localhost, or an address that is translated on the way.
func ranked(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{nearby(c, p.ports)}
	p.hint = "the launcher does not name rank 0's host: set RDZV_STORE=HOST for all ranks"
	if master := cmp.Or(c.Master, c.Env["MASTER_ADDR"]); master != "" {
		p.sources = append(p.sources, names(c.Resolve, []string{master}, 0, p.ports))
		p.hint = fmt.Sprintf("rank 0's agent hosts the store on host %q: is it running? "+
			"RDZV_STORE=HOST for all ranks names another host", master)
	}
	p.announce = !c.oneNode()
	return p, nil
}
