package options

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
)

// UserVariable has the user of an etcd cluster and the password. There is no flag: every user of a
// node can read the flags of a process.
const UserVariable = "RDZV_STORE_USER"

// store are the flags about where the agents of a job meet.
type store struct {
	store     string
	tokenFile string
	net       flags.CommaList
	ports     string
	low, high int // of ports
	insecure  bool

	ca, cert, key string
	prefix        string
	timeout       time.Duration
	cluster       etcd.Cluster // of these and of the environment, if store has URLs
	unread        bool         // store cannot be read
}

// listening are the flags about what a store listens on, and who may connect to it.
func (s *store) listening() []flags.Row {
	return []flags.Row{
		flags.Flag("--token-file FILE", "the shared secret (~/.config/rdzv/token)", &s.tokenFile),
		flags.Flag("--net CIDR|NAME|!NAME",
			"use, or do not use, this network or interface; comma-separated", &s.net),
		flags.Flag("--port-range LOW-HIGH", "ports for the store ("+defaultPorts+")", &s.ports),
	}
}

func (s *store) groups() []flags.Group {
	rows := []flags.Row{
		flags.Flag("--store HOST[:PORT]|URL", "the agent on HOST hosts the store, or rdzv store does "+
			"(detected); or an etcd cluster is the store: its URLs, comma-separated", &s.store),
	}
	rows = append(append(rows, s.listening()...),
		flags.Flag("--insecure", "no token: connections are not authenticated", &s.insecure))
	return []flags.Group{
		{Title: "Finding the other agents", Note: tokenNote, Rows: rows},
		{Title: "With an etcd cluster as the store", Note: etcdNote, Rows: []flags.Row{
			flags.Flag("--store-ca FILE",
				"CA certificates of the cluster (those that this host trusts)", &s.ca),
			flags.Flag("--store-cert FILE", "certificate of this client", &s.cert),
			flags.Flag("--store-key FILE", "key of that certificate", &s.key),
			flags.Flag("--store-prefix PREFIX", "prefix of all keys ("+rdzv.DefaultPrefix+")", &s.prefix),
			flags.Flag("--store-timeout D", "the job ends if the cluster, or rdzv store, does not "+
				"answer for this long while PROGRAM runs (1m; in a job with restarts --peer-timeout)",
				&s.timeout),
		}},
	}
}

// read reads the values that consist of parts. The ports and the cluster are not known if it fails.
func (s *store) read(c command, env envmap.Env) error {
	badStore := s.readCluster(env)
	if badStore == nil && !s.cluster.Given() && strings.Contains(s.store, ",") {
		badStore = c.reject(true, "store", s.store, "must be HOST, HOST:PORT, or URLs of an etcd "+
			"cluster, which begin with https://")
	}
	if badStore != nil {
		s.cluster, s.unread = etcd.Cluster{}, true
	}
	return flags.Join(s.readPorts(c), badStore)
}

func (s *store) set(c *agent.Config) {
	c.TokenFile, c.Insecure, c.Networks = s.tokenFile, s.insecure, s.net
	c.PortLow, c.PortHigh = s.low, s.high
	c.Etcd, c.StoreTimeout = s.cluster, s.timeout
	if !s.cluster.Given() && !s.unread {
		c.Store = s.store
	}
}

// readPorts reads LOW-HIGH of --port-range.
func (s *store) readPorts(c command) error {
	from, to, _ := strings.Cut(s.ports, "-")
	lo, badLo := strconv.Atoi(from)
	hi, badHi := strconv.Atoi(to)
	if badLo != nil || badHi != nil || lo < 1 || hi > 65535 || lo > hi {
		return c.reject(true, "port-range", s.ports,
			"must be LOW-HIGH within 1 to 65535, such as 29600-29999")
	}
	s.low, s.high = lo, hi
	return nil
}

// readCluster reads the flags about an etcd cluster, and those variables of etcdctl that no flag
// overrides. ETCDCTL_ENDPOINTS is not one of them: that somebody uses etcdctl does not mean that
// all jobs are to depend on that cluster.
func (s *store) readCluster(env envmap.Env) (err error) {
	if !etcd.IsURL(s.store) {
		return nil
	}
	c := etcd.Cluster{
		CA:     cmp.Or(s.ca, env["ETCDCTL_CACERT"]),
		Cert:   cmp.Or(s.cert, env["ETCDCTL_CERT"]),
		Key:    cmp.Or(s.key, env["ETCDCTL_KEY"]),
		Prefix: strings.TrimRight(s.prefix, "/") + "/",
	}
	user, password, given := strings.Cut(cmp.Or(env[UserVariable], env["ETCDCTL_USER"]), ":")
	if c.User, c.Password = user, password; !given {
		c.Password = env["ETCDCTL_PASSWORD"]
	}
	if c.URLs, err = etcd.ParseURLs(s.store); err != nil {
		return err
	}
	s.cluster = c
	return c.Check()
}

// isEtcdPassword tells whether a variable of the environment has the password of an etcd user,
// which workers do not get.
func isEtcdPassword(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == "ETCDCTL_USER" || name == "ETCDCTL_PASSWORD"
}

// unused are flags and the variable about an etcd cluster although there is none. A shared store
// has a timeout too, and --store may name one.
func (s *store) unused(given *pflag.FlagSet, env envmap.Env) (names []string) {
	if s.cluster.Given() {
		return nil
	}
	for _, name := range []string{
		"store-ca", "store-cert", "store-key", "store-prefix", "store-timeout",
	} {
		if given.Changed(name) && (name != "store-timeout" || s.store == "") {
			names = append(names, "--"+name)
		}
	}
	if env[UserVariable] != "" {
		names = append(names, UserVariable)
	}
	return names
}
