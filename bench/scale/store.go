package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
	"rdzv/rdzv/store"
)

// serve is the main function of the store's process. It prints its address and key, then for each
// line that it reads its usage so far. It ends when its input ends.
func serve(n int, o options) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rdzv-scale-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := store.Start(ctx, store.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	cfg := rdzv.LeaderConfig{Job: "scale", Agents: n, Lost: s.Lost()}
	leader, err := rdzv.NewLeader(ctx, s.Client(), cfg)
	if err != nil {
		return err
	}
	address, key, err := listen(ctx, s, o)
	if err != nil {
		return err
	}
	fmt.Println(address, hex.EncodeToString(key[:]))
	go leader.Run(ctx) // until this process ends
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		used, peak := usage()
		fmt.Println(int64(used), peak, runtime.NumGoroutine())
	}
	return nil
}

// listen serves the store on loopback. With TLS, the listener is that of package meet, which admits
// only agents of the job; otherwise it admits any connection.
func listen(ctx context.Context, s *store.Server, o options) (string, secret.Key, error) {
	if !o.tls {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", secret.Key{}, err
		}
		s.Serve(l)
		return l.Addr().String(), secret.Key{}, nil
	}
	token := secret.NewKey()
	config := meet.Config{
		Job: "scale", Nodes: 1, Token: func() ([]byte, error) { return token[:], nil },
	}
	m, err := meet.Meet(ctx, config, func(_ context.Context, l net.Listener) error {
		s.Serve(l)
		return nil
	})
	if err != nil {
		return "", secret.Key{}, err
	}
	return m.Addr.String(), *m.Key, nil
}

// usage returns what this process has used: CPU time, and bytes of memory at its peak.
func usage() (cpu time.Duration, peak int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	status, err := os.ReadFile("/proc/self/status") // a rusage's peak is inherited from the parent
	if err != nil {
		return 0, 0
	}
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fmt.Sscan(after, &peak)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), peak << 10
}

// process is the store's process as the agents' process sees it.
type process struct {
	cmd     *exec.Cmd
	in      interface{ Write([]byte) (int, error) }
	close   func() error
	out     *bufio.Reader
	address string
	key     secret.Key
}

func startStore(n int, o options) (*process, error) {
	cmd := exec.Command(os.Args[0],
		fmt.Sprint("-store=", n), fmt.Sprint("-tls=", o.tls), "-profile="+o.profile)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, in: in, close: in.Close, out: bufio.NewReader(out)}
	var key string
	if _, err := fmt.Fscanln(p.out, &p.address, &key); err != nil {
		return nil, fmt.Errorf("the store did not start: %w", err)
	}
	_, err = hex.Decode(p.key[:], []byte(key))
	return p, err
}

// used is what the store's process reports about itself.
type used struct {
	cpu        time.Duration
	peak       int64
	goroutines int
}

func (p *process) usage() (u used, err error) {
	if _, err = fmt.Fprintln(p.in); err == nil {
		_, err = fmt.Fscanln(p.out, &u.cpu, &u.peak, &u.goroutines)
	}
	return u, err
}

func (p *process) end() error {
	p.close()
	return p.cmd.Wait()
}
