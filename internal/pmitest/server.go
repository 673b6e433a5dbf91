// Package pmitest is the launcher's side of PMI-1, for tests.
package pmitest

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A Server is the proxy at the other end of PMI_FD, for all the ranks of a job.
type Server struct {
	mu     sync.Mutex
	size   int
	kvs    map[string]string
	inside []*os.File // who waits at the barrier
	heard  []string   // every line, with the rank
	Ended  chan int   // ranks that have said finalize
	done   sync.WaitGroup
	FDs    []int // of the ranks
	ends   []*os.File
}

// Start serves the ranks of a job until the test ends.
func Start(t *testing.T, size int) *Server {
	h := &Server{size: size, kvs: map[string]string{}, Ended: make(chan int, size)}
	for rank := range size {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		h.FDs = append(h.FDs, pair[0])
		end := os.NewFile(uintptr(pair[1]), "hydra")
		h.ends = append(h.ends, end)
		h.done.Go(func() { h.serve(rank, end) })
	}
	t.Cleanup(func() {
		for i := range h.FDs {
			syscall.Shutdown(h.FDs[i], syscall.SHUT_RDWR)
		}
		h.done.Wait()
		for i := range h.FDs {
			syscall.Close(h.FDs[i])
		}
	})
	return h
}

// Heard gives every line that the ranks have sent, each behind its rank.
func (h *Server) Heard() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.heard, "\n")
}

func (h *Server) serve(rank int, end *os.File) {
	defer end.Close()
	for lines := bufio.NewScanner(end); lines.Scan(); {
		if !h.answer(rank, end, lines.Text()) {
			return
		}
	}
}

func (h *Server) answer(rank int, end *os.File, line string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, fmt.Sprint(rank, " ", line))
	q := fields(line)
	switch q["cmd"] {
	case "init":
		end.WriteString("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n")
	case "get_my_kvsname":
		end.WriteString("cmd=my_kvsname kvsname=kvs_1_0\n")
	case "put":
		h.kvs[q["key"]] = q["value"]
		end.WriteString("cmd=put_result rc=0 msg=success\n")
	case "get":
		end.WriteString("cmd=get_result rc=0 msg=success value=" + h.kvs[q["key"]] + "\n")
	case "barrier_in":
		if h.inside = append(h.inside, end); len(h.inside) == h.size {
			for _, e := range h.inside {
				e.WriteString("cmd=barrier_out\n")
			}
			h.inside = nil
		}
	case "finalize":
		end.WriteString("cmd=finalize_ack\n")
		h.Ended <- rank
		return false
	}
	return true
}

func fields(line string) map[string]string {
	q := map[string]string{}
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		q[name] = value
	}
	return q
}
