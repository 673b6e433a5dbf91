package options

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
)

// UserVariable has the user of an etcd cluster and the password. There is no flag: every user of a
// node can read the flags of a process.
const UserVariable = "RDZV_STORE_USER"

// stores are the flags about where the agents of a job meet.
func stores(c *agent.Config) []flags.Group {
	rows := []flags.Row{
		flags.Flag("--store HOST[:PORT]|URL", "the agent on HOST hosts the store, or rdzv store does "+
			"(detected); or an etcd cluster is the store: its URLs, comma-separated", store{c}),
	}
	rows = append(append(rows, listening(c)...),
		flags.Flag("--insecure", "no token: connections are not authenticated", &c.Insecure))
	return []flags.Group{
		{Title: "Finding the other agents", Note: tokenNote, Rows: rows},
		{Title: "With an etcd cluster as the store", Note: etcdNote, Rows: []flags.Row{
			flags.Flag("--store-ca FILE",
				"CA certificates of the cluster (those that this host trusts)", &c.Etcd.CA),
			flags.Flag("--store-cert FILE", "certificate of this client", &c.Etcd.Cert),
			flags.Flag("--store-key FILE", "key of that certificate", &c.Etcd.Key),
			flags.Flag("--store-prefix PREFIX", "prefix of all keys ("+c.Etcd.Prefix+")", &c.Etcd.Prefix),
			flags.Flag("--store-timeout D", "the job ends if the cluster, or rdzv store, does not "+
				"answer for this long while PROGRAM runs (1m; in a job with restarts --peer-timeout)",
				&c.StoreTimeout),
		}},
	}
}

// listening are the flags about what a store listens on, and who may connect to it.
func listening(c *agent.Config) []flags.Row {
	return []flags.Row{
		flags.Flag("--token-file FILE", "the shared secret (~/.config/rdzv/token)", &c.TokenFile),
		flags.Flag("--net CIDR|NAME|!NAME",
			"use, or do not use, this network or interface; comma-separated",
			(*flags.CommaList)(&c.Networks)),
		flags.Flag("--port-range LOW-HIGH", "ports for the store ("+ports{c}.String()+")",
			ports{c}),
	}
}

// The notes after these groups.
const (
	tokenNote = `    RDZV_TOKEN can hold the token itself, RDZV_JOIN the value that the first
    node prints on a terminal for the other nodes. RDZV_TERMINATION_LOG is the
    termination log of a pod (/dev/termination-log), or off.
`
	etcdNote = `    RDZV_STORE_USER is NAME:PASSWORD of a user of the cluster. ETCDCTL_CACERT,
    _CERT, _KEY, _USER and _PASSWORD are used too.
`
)

// store is the value of --store: a host, or URLs of a cluster. What is wrong with the URLs is found
// by Validate: an error of Set would be printed with a password that is in them.
type store struct{ *agent.Config }

func (s store) Set(text string) error {
	switch {
	case etcd.IsURL(text):
		s.Store, s.Etcd.URLs = "", etcd.ParseURLs(text)
	case strings.Contains(text, ","):
		return errors.New("must be HOST, HOST:PORT, or URLs of an etcd cluster, which begin with " +
			"https://")
	default:
		s.Store, s.Etcd.URLs = text, nil
	}
	return nil
}

func (s store) String() string { return cmp.Or(s.Store, s.Etcd.String()) }

func (s store) Type() string { return "store" }

// ports is the value of --port-range.
type ports struct{ *agent.Config }

func (p ports) Set(text string) error {
	from, to, _ := strings.Cut(text, "-")
	low, badLow := strconv.Atoi(from)
	high, badHigh := strconv.Atoi(to)
	if badLow != nil || badHigh != nil || high == 0 { // in an agent.Config 0-0 is the default
		return errors.New("must be LOW-HIGH within 1 to 65535, such as 29600-29999")
	}
	p.PortLow, p.PortHigh = low, high
	return nil
}

func (p ports) String() string { return fmt.Sprintf("%d-%d", p.PortLow, p.PortHigh) }

func (p ports) Type() string { return "ports" }

// completeCluster adds the slash at the end of a prefix, and what no flag says of a cluster, from
// the variables of etcdctl. ETCDCTL_ENDPOINTS is not one of them: that somebody uses etcdctl does
// not mean that all jobs are to depend on that cluster.
func completeCluster(c *etcd.Cluster, env envmap.Env) {
	c.Prefix = strings.TrimRight(c.Prefix, "/") + "/"
	c.CA = cmp.Or(c.CA, env["ETCDCTL_CACERT"])
	c.Cert = cmp.Or(c.Cert, env["ETCDCTL_CERT"])
	c.Key = cmp.Or(c.Key, env["ETCDCTL_KEY"])
	user, password, given := strings.Cut(cmp.Or(env[UserVariable], env["ETCDCTL_USER"]), ":")
	if c.User, c.Password = user, password; !given {
		c.Password = env["ETCDCTL_PASSWORD"]
	}
}

// isEtcdPassword tells whether a variable of the environment has the password of an etcd user,
// which workers do not get.
func isEtcdPassword(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == "ETCDCTL_USER" || name == "ETCDCTL_PASSWORD"
}

// Unused are flags and the variable about an etcd cluster although there is none. A shared store
// has a timeout too, and --store may name one.
func (o *Options) Unused(env envmap.Env) (names []string) {
	if o.Settings.Etcd.Given() {
		return nil
	}
	for _, name := range []string{
		"store-ca", "store-cert", "store-key", "store-prefix", "store-timeout",
	} {
		if o.given.Changed(name) && (name != "store-timeout" || o.Settings.Store == "") {
			names = append(names, "--"+name)
		}
	}
	if env[UserVariable] != "" {
		names = append(names, UserVariable)
	}
	return names
}
