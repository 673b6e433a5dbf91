package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
)

// check rejects invalid and contradictory flags of exec before anything is started. It reports all
// of them.
func (o *options) check(env envmap.Env) error {
	var goodPorts bool
	o.portLo, o.portHi, goodPorts = portRange(o.ports)
	badStore := o.readCluster(env)
	external := o.cluster.Given()
	plain := external && !o.cluster.Protected()
	switch {
	case o.store == "" || badStore != nil || external:
	case strings.Contains(o.store, ","):
		badStore = o.reject(true, "store", o.store, "must be HOST, HOST:PORT, or URLs of an etcd "+
			"cluster, which begin with https://")
	default:
		_, _, badStore = meet.ParseStore(o.store)
	}
	const negative = "must not be negative"
	minPeerTimeout, tooShort := presence.MinTimeout, "must be at least %v"
	if external && o.restarts() > 0 {
		minPeerTimeout = agent.MinPeerTimeoutInEtcd
		tooShort += " with restarts: electing a leader takes an etcd cluster up to 2s"
	}
	return join(
		o.checkShared(),
		o.readShareSignals(),
		o.readFinalCodes(),
		o.checkNodeRange(),
		o.reject(o.lastCall < 0, "last-call", o.lastCall, negative),
		o.reject(o.maxRestarts < 0, "max-restarts", o.maxRestarts, negative),
		o.reject(o.spares < 0, "spares", o.spares, negative),
		o.reject(o.spares > 0 && o.maxRestarts == 0 && o.flags.Changed("max-restarts"), "spares",
			o.spares, "--max-restarts 0 lets none take over ranks"),
		o.exclusive(o.quiet && o.verbose, "quiet", "verbose"),
		o.torchrun.apply(o),
		o.reject(o.capture == captureNever && (o.tag || o.logDir != "" || o.show != ""), "capture",
			string(o.capture), "--tag, --log-dir and --show read the output"),
		o.reject(agent.CheckShow(o.show) != nil, "show", o.show,
			"must be ranks, such as 0 or 0,4-7, local:0, or none"),
		o.reject(!goodPorts, "port-range", o.ports,
			"must be LOW-HIGH within 1 to 65535, such as 29600-29999"),
		badStore,
		meet.CheckNet(o.net),
		o.exclusive(external && o.insecure, "store", "insecure"),
		o.reject(external && env["RDZV_JOIN"] != "", "store", o.cluster.String(),
			"RDZV_JOIN names another store"),
		o.reject(plain && (len(o.export) > 0 || o.exportFile != ""), "store", o.cluster.String(),
			"variables are exported through https:// only"),
		o.reject(o.flags.Changed("store-timeout") && o.storeTimeout < o.peerTimeout,
			"store-timeout", o.storeTimeout,
			fmt.Sprintf("must be at least --peer-timeout, %v", o.peerTimeout)),
		o.exclusive(o.insecure && o.tokenFile != "", "insecure", "token-file"),
		o.exclusive(o.insecure && (len(o.export) > 0 || o.exportFile != ""), "insecure", "export"),
		o.reject(o.joinTimeout < 0, "join-timeout", o.joinTimeout, negative),
		o.reject(o.grace < 0, "grace", o.grace, negative),
		o.reject(o.exitTimeout < 0, "exit-timeout", o.exitTimeout, negative),
		o.reject(o.peerTimeout < minPeerTimeout, "peer-timeout", o.peerTimeout,
			fmt.Sprintf(tooShort, minPeerTimeout)),
	)
}

// readShareSignals takes the signals with these names, with or without "SIG".
func (o *options) readShareSignals() error {
	for _, name := range o.shareSignals {
		full := "SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")
		s := unix.SignalNum(full)
		why := "must be USR1 or USR2"
		switch s {
		case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
			why += ": " + full + " to any agent ends the job on all nodes"
		}
		if !agent.Shareable(s) {
			return o.reject(true, "share-signals", name, why)
		}
		o.shared = append(o.shared, s)
	}
	return nil
}

// readFinalCodes takes the exit codes after which the workers are not restarted.
func (o *options) readFinalCodes() error {
	for _, text := range o.noRestartOn {
		code, err := strconv.Atoi(text)
		if err != nil || code < 1 || code > 255 {
			return o.reject(true, "no-restart-on", text, "must be exit codes, 1 to 255, such as 3,139")
		}
		o.finalCodes = append(o.finalCodes, code)
	}
	return nil
}

// checkShared is check for a command that has only the flags of define. It makes the environment of
// a worker in a world of one: what fails here would fail on every node after the agents have met.
func (o *options) checkShared() error {
	badNodes := o.flags.Changed("nodes") && (o.nodes < 1 || o.nodes > envmap.MaxTasks)
	nodesRange := fmt.Sprintf("must be 1 to %d", envmap.MaxTasks)
	badNodeRank := o.nodeRank < 0 || o.nodeRank >= envmap.MaxTasks
	beginning := o.job[:min(16, len(o.job))] + "..."
	tooLong := fmt.Sprintf("must not be longer than %d bytes", agent.MaxJob)
	hasControl := strings.ContainsFunc(o.job, unicode.IsControl)
	badPort := o.masterPort < 0 || o.masterPort > 65535
	_, badExport := envmap.ParseExports(o.export)
	_, badProcs := envmap.ProcsPerNode(o.procs, 1, 1, rdzv.MaxSlots)
	_, badTorch := envmap.TorchChanges(nil,
		envmap.Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1},
		envmap.TorchOptions{Device: envmap.DeviceMode(o.device), Set: o.set})
	return join(
		checkLauncher(o.launcher),
		o.reject(badNodes, "nodes", o.nodes, nodesRange),
		o.reject(badNodeRank, "node-rank", o.nodeRank, fmt.Sprintf("must be 0 to %d", envmap.MaxTasks-1)),
		o.reject(len(o.job) > agent.MaxJob, "job", beginning, tooLong),
		o.reject(hasControl, "job", o.job, "must not contain control characters"),
		o.reject(badPort, "master-port", o.masterPort, "must be 1 to 65535, or 0 for a free port"),
		o.reject(o.as != "" && o.as != "openmpi", "as", o.as, `must be "openmpi"`),
		o.reject(o.headStart < 0, "head-start", o.headStart, "must not be negative"),
		badExport,
		badProcs,
		envmap.BindMode(o.bind).Check(),
		badTorch,
	)
}

// checkLauncher suggests the launcher that was probably meant.
func checkLauncher(name string) error {
	if name == "" || slices.Contains(envmap.Choices(), name) {
		return nil
	}
	_, err := envmap.Detect(nil, envmap.Launcher(name))
	near := cmp.Or(map[string]string{
		"ompi": "openmpi", "open-mpi": "openmpi", "mpirun": "openmpi", "srun": "slurm",
		"sbatch": "slurm", "mpiexec": "mpich", "impi": "intelmpi", "k8s": "kubernetes",
		"trainer": "kubeflow", "pytorch": "torchrun",
	}[strings.ToLower(name)], nearest(strings.ToLower(name), envmap.Choices()))
	if near == "" {
		return err
	}
	return hinted{err, "did you mean --launcher " + near + "?"}
}

// reject is the error of one flag, nil unless its value is bad.
func (o *options) reject(bad bool, flag string, value any, why string) error {
	if !bad {
		return nil
	}
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	return fmt.Errorf("cannot run %s: --%s %v: %s", o.flags.Name(), flag, value, why)
}

// exclusive is the error of two flags, or their variables, nil unless both are given.
func (o *options) exclusive(both bool, a, b string) error {
	if !both {
		return nil
	}
	return fmt.Errorf("cannot run %s: --%s and --%s (or %s, %s) exclude each other",
		o.flags.Name(), a, b, variable(a), variable(b))
}

// portRange reads LOW-HIGH.
func portRange(s string) (lo, hi int, ok bool) {
	from, to, _ := strings.Cut(s, "-")
	lo, errLo := strconv.Atoi(from)
	hi, errHi := strconv.Atoi(to)
	if errLo != nil || errHi != nil || lo < 1 || hi > 65535 || lo > hi {
		return 0, 0, false
	}
	return lo, hi, true
}

// readCluster reads the flags about an etcd cluster, and those variables of etcdctl that no flag
// overrides. ETCDCTL_ENDPOINTS is not one of them: that somebody uses etcdctl does not mean that
// all jobs are to depend on that cluster.
func (o *options) readCluster(env envmap.Env) (err error) {
	if !etcd.IsURL(o.store) {
		return nil
	}
	c := etcd.Cluster{
		CA:     cmp.Or(o.storeCA, env["ETCDCTL_CACERT"]),
		Cert:   cmp.Or(o.storeCert, env["ETCDCTL_CERT"]),
		Key:    cmp.Or(o.storeKey, env["ETCDCTL_KEY"]),
		Prefix: strings.TrimRight(o.storePrefix, "/") + "/",
	}
	user, password, given := strings.Cut(cmp.Or(o.storeUser, env["ETCDCTL_USER"]), ":")
	if c.User, c.Password = user, password; !given {
		c.Password = env["ETCDCTL_PASSWORD"]
	}
	if c.URLs, err = etcd.ParseURLs(o.store); err != nil {
		return err
	}
	o.cluster = c
	return c.Check()
}

// isEtcdPassword tells whether a variable of the environment has the password of an etcd user,
// which workers do not get.
func isEtcdPassword(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == "ETCDCTL_USER" || name == "ETCDCTL_PASSWORD"
}

// passwordGiven tells whether a password is in the flags of this process.
func (o *options) passwordGiven(env envmap.Env) bool {
	return strings.Contains(o.storeUser, ":") && o.storeUser != env[variable("store-user")]
}

// unusedStoreFlags are flags about an etcd cluster although there is none. A shared store has a
// timeout too, and --store may name one.
func (o *options) unusedStoreFlags() (names []string) {
	if o.cluster.Given() {
		return nil
	}
	for _, name := range []string{
		"store-ca", "store-cert", "store-key", "store-user", "store-prefix", "store-timeout",
	} {
		if o.flags.Changed(name) && (name != "store-timeout" || o.store == "") {
			names = append(names, "--"+name)
		}
	}
	return names
}
