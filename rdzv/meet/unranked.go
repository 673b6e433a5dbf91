package meet

// unranked plans for agents that are started by hand and know nothing but the token.
func unranked(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.hosts = false
	p.hint = "run the same command on the other nodes; " +
		"if the network has no multicast, give all of them the same --store HOST"
	return p, nil
}
