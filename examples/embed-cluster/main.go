// Command embed-cluster lets workers agree on a world through an etcd cluster that exists already,
// with package rdzv and etcd's client alone. The workers are goroutines of one or more processes;
// the members of a job elect one of them to lead it.
//
//	embed-cluster -endpoints http://127.0.0.1:2379                    all workers succeed
//	embed-cluster -endpoints http://127.0.0.1:2379 -fail 1            rank 1 fails
//	embed-cluster -endpoints https://a:2379,https://b:2379 -cacert ca.pem -cert c.pem -key k.pem \
//	    -user trainer:PASSWORD -job demo -agents 6 -here 3            and the same on another host
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"rdzv/rdzv"
)

// cluster is how to reach the etcd cluster.
type cluster struct{ endpoints, cacert, cert, key, user string }

// task is the job, and the part of it that runs in this process.
type task struct {
	job                string
	agents, here, fail int
}

func main() {
	var c cluster
	flag.StringVar(&c.endpoints, "endpoints", "http://127.0.0.1:2379", "`URLs` of the members")
	flag.StringVar(&c.cacert, "cacert", "", "`file` with the certificates that sign those of members")
	flag.StringVar(&c.cert, "cert", "", "`file` with this client's certificate")
	flag.StringVar(&c.key, "key", "", "`file` with its private key")
	flag.StringVar(&c.user, "user", "", "`NAME:PASSWORD`; its role needs readwrite on /rdzv/")
	var t task
	flag.StringVar(&t.job, "job", "demo", "`name` of the job, the same in all its processes")
	flag.IntVar(&t.agents, "agents", 3, "number of workers in all processes")
	flag.IntVar(&t.here, "here", 0, "number of workers in this process; 0 is all")
	flag.IntVar(&t.fail, "fail", -1, "rank of the worker that fails")
	flag.Parse()
	if err := run(context.Background(), c, t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c cluster, t task) error {
	client, err := c.dial(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to %s: %w", c.endpoints, err)
	}
	defer client.Close()
	if t.here == 0 {
		t.here = t.agents
	}
	errs := make(chan error, t.here)
	for range t.here {
		go func() { errs <- t.member(ctx, client) }()
	}
	for range t.here {
		err = errors.Join(err, <-errs)
	}
	return err
}

// dial returns a client. With a user it connects at once, otherwise when it is first used.
func (c cluster) dial(ctx context.Context) (*clientv3.Client, error) {
	config := clientv3.Config{
		Context: ctx, Endpoints: strings.Split(c.endpoints, ","), DialTimeout: 5 * time.Second,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		Logger: zap.NewNop(), // it would log requests that are cancelled when the job has ended
	}
	config.Username, config.Password, _ = strings.Cut(c.user, ":")
	var err error
	config.TLS, err = c.tls()
	if err != nil {
		return nil, err
	}
	return clientv3.New(config)
}

// tls is the configuration for https; nil is that of the system.
func (c cluster) tls() (*tls.Config, error) {
	if c.cacert == "" && c.cert == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.cacert != "" {
		pem, err := os.ReadFile(c.cacert)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", c.cacert)
		}
	}
	if c.cert != "" {
		own, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// member takes part in the job with one worker.
func (t task) member(ctx context.Context, client *clientv3.Client) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	session, err := rdzv.Join(ctx, client, rdzv.Config{
		Job: t.job,
		Self: rdzv.Member{
			ID: rand.Text()[:8], Host: host, PID: os.Getpid(), MasterPort: 29500,
			// The leader chooses the ranks.
			Tasks: rdzv.Unplaced(1), LocalSize: rdzv.Unknown, NodeRank: rdzv.Unknown,
		},
		JoinBy: time.Now().Add(time.Minute),
		// Any member may be elected to lead the job.
		Lead: &rdzv.LeaderConfig{Tasks: t.agents},
		// A member that is silent for so long is lost.
		PeerTimeout: 10 * time.Second,
		// The job goes on while the cluster elects another leader or restarts.
		StoreTimeout: time.Minute,
	})
	if err != nil {
		return err
	}
	// From here on Settle and Leave must be called whatever happens: the others wait for this member.
	var ended []rdzv.Worker
	world, err := session.World(ctx)
	if err == nil { // else the job has ended before its world reached this member
		ended = append(ended, work(session.Context(), world, t.fail))
	}
	if err := session.Settle(ctx, ended); err != nil { // a failure among them ends the job
		return err
	}
	summary, err := session.Leave(ctx) // when all have settled
	if err != nil {
		return err
	}
	if summary.Verdict.Kind != rdzv.Done {
		return summary.Verdict
	}
	fmt.Printf("rank %d of %d: %v\n", world.Seat.First(), world.Size, summary.Verdict)
	return nil
}

// work is one worker. Its context ends with the job.
func work(ctx context.Context, world rdzv.World, fail int) rdzv.Worker {
	w := rdzv.Worker{Rank: world.Seat.RankOf(0), LocalRank: world.Seat.LocalRankOf(0)}
	switch {
	case w.Rank == fail:
		w.Code, w.Text = 3, "no such data set"
	case fail >= 0:
		<-ctx.Done() // it would work on, and is told to stop because another one has failed
		w.Code, w.Stopped = 1, true
	}
	return w
}
