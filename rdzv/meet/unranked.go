package meet

// unranked plans for agents that are started by hand and know nothing but the token.
func unranked(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.hosts = false
	p.hint = "start the same line on the other nodes; where the network has no multicast, give all the same --store HOST"
	return p, nil
}
