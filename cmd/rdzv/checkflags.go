package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
)

// check rejects invalid and contradictory flags before anything is started. It reports all of them.
// What an agent cannot use is found by package agent, which names the fields of its configuration.
func (o *options) check(env envmap.Env) error {
	badPorts := o.readPorts()
	badStore := o.readCluster(env)
	if badStore == nil && !o.cluster.Given() && strings.Contains(o.store, ",") {
		badStore = o.reject(true, "store", o.store, "must be HOST, HOST:PORT, or URLs of an etcd "+
			"cluster, which begin with https://")
	}
	problems := []error{
		checkLauncher(o.launcher),
		o.readShareSignals(),
		o.readFinalCodes(),
		o.reject(o.flags.Changed("nodes") && o.nodes == 0, "nodes", o.nodes,
			fmt.Sprintf("must be 1 to %d", envmap.MaxTasks)),
		o.exclusive(o.quiet && o.verbose, "quiet", "verbose"),
		o.reject(o.as != "" && o.as != "openmpi", "as", o.as, `must be "openmpi"`),
		o.torchrun.apply(o),
		badPorts,
		badStore,
	}
	config := o.settings(env)
	if badStore != nil {
		config.Store, config.Etcd = "", etcd.Cluster{}
	}
	return join(append(problems, o.inFlags(config.Validate()))...)
}

// inFlags is what is wrong with fields of an agent's configuration, in terms of the flags.
func (o *options) inFlags(err error) error {
	if err == nil {
		return nil
	}
	var problems []error
	for _, err := range problemsOf(err) {
		bad, isBad := errors.AsType[*agent.SettingError](err)
		two, areTwo := errors.AsType[*agent.ExclusiveError](err)
		switch {
		case isBad:
			flag := strings.TrimRight(flagname.Of(bad.Field)+" "+bad.Value, " ")
			err = fmt.Errorf("cannot run %s: %s: %s", o.flags.Name(), flag, flagname.In(bad.Reason))
		case areTwo:
			err = o.exclusive(true, flagname.Of(two.A)[2:], flagname.Of(two.B)[2:])
		}
		problems = append(problems, err)
	}
	return join(problems...)
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
		o.flags.Name(), a, b, variable(strings.Fields(a)[0]), variable(strings.Fields(b)[0]))
}

// readPorts reads LOW-HIGH of --port-range.
func (o *options) readPorts() error {
	from, to, _ := strings.Cut(o.ports, "-")
	lo, badLo := strconv.Atoi(from)
	hi, badHi := strconv.Atoi(to)
	if badLo != nil || badHi != nil || lo < 1 || hi > 65535 || lo > hi {
		return o.reject(true, "port-range", o.ports,
			"must be LOW-HIGH within 1 to 65535, such as 29600-29999")
	}
	o.portLo, o.portHi = lo, hi
	return nil
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
