package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

// greeter listens, and answers every client that has sent something with the same text.
func answering(t *testing.T, greeting string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				io.ReadAtLeast(conn, make([]byte, 1<<10), 1)
				io.WriteString(conn, greeting)
				io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return l.Addr().String()
}

// The error about a port that the user has specified names the service that uses it, with a key and
// without.
func TestExplainPortInUse(t *testing.T) {
	service := func(answer string) func(*testing.T, Config) string {
		return func(t *testing.T, _ Config) string { return answering(t, answer) }
	}
	for name, c := range map[string]struct {
		listen func(t *testing.T, c Config) string
		want   string
	}{
		"another job": {func(t *testing.T, c Config) string {
			c.Job = "another"
			mustMeet(t, c, newFakeStore(t, "another").host)
			return c.Store
		}, "address already in use (by the store of another job)"},
		"SSH": {
			service("SSH-2.0-OpenSSH_9.2p1\r\n"), "address already in use (by an SSH server)"},
		"HTTP": {
			service("HTTP/1.1 400 Bad Request\r\n\r\n"),
			"address already in use (by an HTTP server)"},
		"SMTP":      {service("220 mail.example.org\r\n"), "address already in use" + byThisProcess()},
		"no answer": {service(""), "address already in use" + byThisProcess()},
	} {
		for _, insecure := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				free, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				free.Close()
				mine := storeConfig(t, free.Addr().String())
				mine.Insecure = insecure
				mine.Store = c.listen(t, mine)
				_, err = Meet(t.Context(), mine, noHost(t))
				want := "cannot listen on " + mine.Store + ": " + c.want
				if !errors.Is(err, syscall.EADDRINUSE) || err.Error() != want {
					t.Errorf("Meet: %v, want %s", err, want)
				}
			})
		}
	}
}

func byThisProcess() string {
	self, _ := procfs.Read(procfs.System, os.Getpid())
	return fmt.Sprintf(" (by pid %d (%s))", os.Getpid(), self.Name)
}

// Where etcd listens, or something that answers like etcd, the hint has the URL of an etcd cluster.
func TestEtcdWithoutScheme(t *testing.T) {
	for store, want := range map[string]map[error]bool{
		"node9:2379": {syscall.ECONNREFUSED: true, io.EOF: true},
		"node9:2380": {
			syscall.ECONNREFUSED: false, io.EOF: true, gate.ErrNotStore: true,
			gate.ServiceError("an HTTP server"): true, gate.ServiceError("an SSH server"): false,
		},
		"node9": {io.EOF: false},
	} {
		c := storeConfig(t, store)
		c.setDefaults()
		p, _, err := namedStore(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		for answer, want := range want {
			hint := p.hintFor(Searching{Tried: []Answer{{Err: answer}}})
			if strings.Contains(hint, "--store http://"+store) != want {
				t.Errorf("%s, %v: hint %q, want a URL: %t", store, answer, hint, want)
			}
		}
	}
}

// The error and the hint name a service that listens where the store should be.
func TestOtherServices(t *testing.T) {
	var group sync.WaitGroup
	defer group.Wait()
	for answer, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.2p1\r\n":        "an SSH server, not a store",
		"HTTP/1.1 400 Bad Request\r\n\r\n": "an HTTP server, not a store",
		"220 mail.example.org\r\n":         "answered, but is not a store",
	} {
		for _, insecure := range []bool{false, true} {
			c := config(t, -1, 2)
			c.Insecure, c.Join = insecure, answering(t, answer)+"/"+secret.NewKey().Reveal()
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err := Meet(ctx, c, noHost(t))
				var none *NotFoundError
				if !errors.As(err, &none) || !strings.Contains(err.Error(), want) ||
					!strings.HasPrefix(none.Hint, "another service uses that port") {
					t.Errorf("insecure %t: %v", insecure, err)
				}
			})
		}
	}
}
