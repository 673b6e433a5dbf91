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

// serve is the store's process. It prints its address and key, then for each line
// that it reads what it has used so far, and ends with its input.
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
	leader, err := rdzv.NewLeader(ctx, s.Client(), rdzv.LeaderConfig{Job: "scale", Agents: n, Lost: s.Lost()})
	if err != nil {
		return err
	}
	address, key, err := listen(ctx, s, o)
	if err != nil {
		return err
	}
	fmt.Println(address, hex.EncodeToString(key[:]))
	go leader.Run(ctx) // as long as this process
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		used, peak := usage()
		fmt.Println(int64(used), peak, runtime.NumGoroutine())
	}
	return nil
}

// listen serves the store on loopback: with TLS through the listener of package
// meet, which admits only agents of the job, and else without any protection.
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
	config := meet.Config{Job: "scale", Nodes: 1, Token: func() ([]byte, error) { return token[:], nil }}
	m, err := meet.Meet(ctx, config, func(_ context.Context, l net.Listener) error {
		s.Serve(l)
		return nil
	})
	if err != nil {
		return "", secret.Key{}, err
	}
	return m.Addr.String(), *m.Key, nil
}

// usage is what this process has used: time on the cores, and bytes of memory at
// most.
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

// process is the store's process, seen from that of the agents.
type process struct {
	cmd     *exec.Cmd
	in      interface{ Write([]byte) (int, error) }
	close   func() error
	out     *bufio.Reader
	address string
	key     secret.Key
}

func startStore(n int, o options) (*process, error) {
	cmd := exec.Command(os.Args[0], fmt.Sprint("-store=", n), fmt.Sprint("-tls=", o.tls), "-profile="+o.profile)
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

// used is what the store's process tells of itself.
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
