package meet

import (
	"cmp"
	"fmt"
)

// ranked is the plan for launchers that provide a rank and at most the name of rank 0's host. Rank
// 0 hosts on its own addresses, whatever the name resolves to on its host: there it may be
// localhost, or an address that is translated on the way. An agent that is the only one of its node
// does not search there.
func ranked(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.sources = []source{fixed("this host", 0, p.addrs, p.ports)}
	p.hint = "the launcher does not name rank 0's host: set RDZV_STORE=HOST for all ranks"
	if master := cmp.Or(c.Master, c.Env["MASTER_ADDR"]); master != "" {
		if c.LocalSize == 1 {
			p.sources = nil
		}
		p.addrs = c.findable(p.addrs)
		p.sources = append(p.sources, named(c, []string{master}, 0, p.ports))
		p.unresolvedHint = c.MasterHint
		p.hint = fmt.Sprintf("rank 0's agent hosts the store on host %q: is it running? It is tried "+
			"again until --join-timeout; RDZV_STORE=HOST for all ranks names another host", master)
	}
	p.announce = !c.oneNode()
	return p, nil
}
