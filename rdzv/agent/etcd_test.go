package agent_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"rdzv/internal/etcdtest"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/presence"
)

// startEtcd starts an etcd, and returns it as a cluster, and what ends it.
func startEtcd(t *testing.T) (etcd.Cluster, func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	e, url, err := etcdtest.Start(ctx, t.TempDir(), "http", nil)
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		e.Server.HardStop() // it answers no more
		e.Close()
	})
	t.Cleanup(end)
	return etcd.Cluster{URLs: []string{url}, Prefix: "/jobs/"}, end
}

func TestJobInEtcd(t *testing.T) {
	cluster, _ := startEtcd(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: cluster.URLs, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	keys := func() int64 {
		t.Helper()
		found, err := client.Get(t.Context(), "/jobs/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return found.Count
	}
	c := config(t, succeed, 2)
	c.Etcd = cluster
	c.Events = func(e agent.Event) {
		switch e := e.(type) {
		case agent.StoreFound:
			if e.Addr != cluster.String() || !e.Leads || e.Hosting {
				t.Errorf("store found: %+v", e)
			}
		case agent.WorkerStarted:
			if keys() == 0 {
				t.Error("the job has no keys")
			}
		}
	}
	result, err := agent.Run(t.Context(), c)
	checkCode(t, result, err, 0)
	if !result.Leads || result.Hosting || result.Ended.Etcd != cluster.String() {
		t.Errorf("%+v", result)
	}
	if n := keys(); n > 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Workers run on when the cluster does not answer, until the store timeout.
func TestEtcdIsLost(t *testing.T) {
	cluster, end := startEtcd(t)
	var stopped time.Time
	var ending sync.WaitGroup
	defer ending.Wait()
	c := config(t, runsOn, 1)
	c.Etcd, c.PeerTimeout, c.StoreTimeout = cluster, presence.MinTimeout, presence.MinTimeout
	c.Events = func(e agent.Event) {
		if _, started := e.(agent.WorkerStarted); started {
			stopped = time.Now()
			ending.Go(end)
		}
	}
	result, err := agent.Run(t.Context(), c)
	checkCode(t, result, err, agent.CodeLost)
	if ran := time.Since(stopped); ran < presence.MinTimeout/2 {
		t.Errorf("the worker was stopped after %v", ran)
	}
	const why = "the store has not answered for 3s"
	want := rdzv.ErrStoreLost.Error() + ": " + why
	if !result.StoreLost || result.Verdict != nil || result.Ended.StoreLost != want {
		t.Errorf("%+v, want %q", result, want)
	}
	if got, want := result.Ended.String(), "lost etcd at "+cluster.String()+": "+why; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEtcdExcludes(t *testing.T) {
	plain := etcd.Cluster{URLs: []string{"http://etcd1:2379"}}
	for want, change := range map[string]func(*agent.Config){
		"--store URL and --store HOST exclude each other": func(c *agent.Config) { c.Store = "node1" },
		"RDZV_JOIN names another store":                   func(c *agent.Config) { c.Join = "10.0.0.1:1/key" },
		"--store and --insecure exclude each other":       func(c *agent.Config) { c.Insecure = true },
		"variables are exported through https:// only":    func(c *agent.Config) { c.Export = []string{"A=b"} },
		"must be at least --peer-timeout, 10s":            func(c *agent.Config) { c.StoreTimeout = 9 * time.Second },
		"user \"a\" without a":                            func(c *agent.Config) { c.Etcd.User = "a" },
		"must end with a slash":                           func(c *agent.Config) { c.Etcd.Prefix = "/jobs" },
		"both its file and that o":                        func(c *agent.Config) { c.Etcd.Cert = "cert.pem" },
	} {
		c := config(t, succeed, 1)
		c.Etcd = plain
		change(&c)
		if _, err := agent.Plan(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
