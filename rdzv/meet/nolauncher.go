package meet

// noLauncher is the plan for agents without a launcher, which have only the token in common.
func noLauncher(c *Config) (*plan, error) {
	p, err := planByToken(c)
	if err != nil {
		return nil, err
	}
	p.hosting = false
	p.hint = "run the same command on the other nodes; " +
		"if the network has no multicast, give all of them the same --store HOST"
	return p, nil
}
