package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// An etcd is a cluster of three members of etcd, on hosts 1 to 3 unless there are hosts before. The
// agents of its jobs run on the other hosts.
type etcd struct {
	*cluster
	etcdOptions
	agentHosts []int
	members    []*etcdMember
	admin      *clientv3.Client // of this process, through the members' Unix sockets
	history    *history         // of all keys of jobs
}

// etcdOptions are how the members run. The zero value of each number is etcd's default.
type etcdOptions struct {
	program   string // with the option --config-file
	secure    bool   // TLS, and users with roles
	passwords bool   // of these users, whose agents have no certificates
	loginTTL  int    // how long a login is valid that is not used, in seconds
	loginCost int    // 4 is almost nothing, 10 takes up to 100 ms
	quota     int    // of the database, in bytes
	syncs     bool   // each change to its disk, which other tests may keep busy for seconds
	before    int    // number of hosts before those of the members
}

// An etcdMember is one of them. Its directory has its configuration, its data and its socket.
type etcdMember struct {
	cluster *etcd
	host    int
	dir     string
	process *process
}

// distributionEtcd is the program of the distribution (3.4 in Debian 12, 3.5 in Debian 13).
func distributionEtcd(t *testing.T) string {
	t.Helper()
	path, err := outputOf("../scripts/etcd")
	if err != nil {
		t.Fatal("cannot find etcd: make test installs what is missing")
	}
	return path
}

// startEtcd starts a cluster, and hosts for agents, until the test ends.
func startEtcd(t *testing.T, agentHosts int, options etcdOptions) *etcd {
	t.Helper()
	const members = 3
	last := options.before + members
	e := &etcd{cluster: newCluster(t, last+agentHosts), etcdOptions: options}
	for i := range agentHosts {
		e.agentHosts = append(e.agentHosts, last+1+i)
	}
	if e.secure {
		e.makeCertificates()
	}
	for host := e.before + 1; host <= last; host++ {
		m := &etcdMember{cluster: e, host: host, dir: e.dir(fmt.Sprint("etcd", host))}
		e.members = append(e.members, m)
		m.configure(last)
		m.start()
	}
	t.Cleanup(func() {
		for _, m := range e.members {
			m.kill()
		}
	})
	e.admin = e.newClient()
	e.awaitAll()
	if e.secure {
		e.makeUsers()
	}
	e.history = e.record()
	return e
}

// newClient is a client of this process.
func (e *etcd) newClient(options ...grpc.DialOption) *clientv3.Client {
	e.t.Helper()
	c := clientv3.Config{Logger: zap.NewNop(), DialTimeout: waitLimit, DialOptions: options}
	for _, m := range e.members {
		c.Endpoints = append(c.Endpoints, m.endpoint())
	}
	client, err := clientv3.New(c)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { client.Close() })
	return client
}

// do makes a call to the cluster, again if it fails, as it does while the cluster elects a leader. A
// call that had succeeded before has one of the errors.
func (e *etcd) do(call func(ctx context.Context) error, done ...error) {
	e.t.Helper()
	var err error
	if !eventually(waitLimit, func() bool {
		ctx, cancel := context.WithTimeout(e.t.Context(), 10*time.Second)
		defer cancel()
		err = call(ctx)
		return err == nil || slices.ContainsFunc(done, func(d error) bool { return errors.Is(err, d) })
	}) {
		e.t.Fatalf("the cluster does not do what the test asks: %v", err)
	}
}

// awaitAll waits until all members have the same leader, and accept changes.
func (e *etcd) awaitAll() {
	e.t.Helper()
	e.do(func(ctx context.Context) error {
		leaders := map[uint64]bool{}
		for _, m := range e.members {
			status, err := e.admin.Status(ctx, m.endpoint())
			if err != nil {
				return err
			}
			leaders[status.Leader] = true
		}
		if len(leaders) != 1 || leaders[0] {
			return fmt.Errorf("leaders: %v", leaders)
		}
		_, err := e.admin.Put(ctx, "changes", "")
		return err
	})
}

// url is where agents reach the members.
func (e *etcd) url() string {
	var urls []string
	for _, m := range e.members {
		urls = append(urls, m.url())
	}
	return strings.Join(urls, ",")
}

// flags are those of rdzv exec.
func (e *etcd) flags() []string {
	flags := []string{"--store", e.url()}
	if e.secure {
		flags = append(flags, "--store-ca", e.file("ca.pem"))
	}
	if e.secure && !e.passwords {
		flags = append(flags, "--store-cert", e.file("client.pem"),
			"--store-key", e.file("client.key"))
	}
	return flags
}

// env has the variables of rdzv exec: a password is in no flag.
func (e *etcd) env() []string {
	if !e.passwords {
		return nil
	}
	return []string{"RDZV_STORE_USER=" + etcdUser + ":" + etcdPassword}
}

func (e *etcd) file(name string) string { return filepath.Join(e.root, name) }

func (m *etcdMember) name() string    { return fmt.Sprint("node", m.host) }
func (m *etcdMember) address() string { return fmt.Sprint("10.77.0.", 10+m.host) }

func (m *etcdMember) url() string {
	scheme := "http://"
	if m.cluster.secure {
		scheme = "https://"
	}
	return scheme + m.address() + ":2379"
}

// The members that agents reach by TLS have an unprotected socket for the test.
const adminSocket = "admin:1"

func (m *etcdMember) socket() string   { return filepath.Join(m.dir, adminSocket) }
func (m *etcdMember) endpoint() string { return "unix://" + m.socket() }

// configure writes the configuration.
func (m *etcdMember) configure(last int) {
	var all []string
	for host := m.cluster.before + 1; host <= last; host++ {
		all = append(all, fmt.Sprintf("node%d=http://10.77.0.%d:2380", host, 10+host))
	}
	peers := "http://" + m.address() + ":2380"
	config := map[string]any{
		"name": m.name(), "data-dir": "data", "logger": "zap", "log-level": "error",
		"listen-peer-urls": peers, "initial-advertise-peer-urls": peers,
		"initial-cluster": strings.Join(all, ","), "initial-cluster-state": "new",
		"listen-client-urls":    m.url() + ",unix://" + adminSocket,
		"advertise-client-urls": m.url(),
		"quota-backend-bytes":   m.cluster.quota,
		"unsafe-no-fsync":       !m.cluster.syncs,
	}
	if ttl := m.cluster.loginTTL; ttl > 0 {
		config["auth-token-ttl"] = ttl
	}
	if cost := m.cluster.loginCost; cost > 0 {
		config["bcrypt-cost"] = cost
	}
	if m.cluster.secure {
		security := map[string]any{
			"cert-file": m.cluster.file("server.pem"), "key-file": m.cluster.file("server.key"),
		}
		if !m.cluster.passwords {
			security["trusted-ca-file"] = m.cluster.file("ca.pem")
			security["client-cert-auth"] = true
		}
		config["client-transport-security"] = security
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.dir, "config"), text, 0o600)
	}
	if err != nil {
		m.cluster.t.Fatal(err)
	}
}

func (m *etcdMember) start() {
	_ = os.Remove(m.socket()) // of a member that was killed
	m.process = m.cluster.start(m.cluster.on(m.host,
		"env", "-C", m.dir, m.cluster.program, "--config-file", "config")...)
}

// kill ends the process like a crash of its host.
func (m *etcdMember) kill() {
	m.signal(syscall.SIGKILL)
	<-m.process.done
}

// signal sends a signal to all processes of the member, if it runs.
func (m *etcdMember) signal(s syscall.Signal) {
	m.cluster.t.Helper()
	if m.process.endsWithin(0) {
		return
	}
	m.process.signal(s)
}

// disconnect separates the member from everything but this process, reconnect ends that.
func (m *etcdMember) disconnect() { m.cluster.hosts("cut", strconv.Itoa(m.host)) }
func (m *etcdMember) reconnect()  { m.cluster.hosts("heal", strconv.Itoa(m.host)) }
