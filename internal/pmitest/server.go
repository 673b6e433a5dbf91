// Package pmitest implements the launcher's side of PMI-1 for tests.
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

// A Server does what Hydra's proxies do at the other ends of PMI_FD, for all ranks of a job.
type Server struct {
	FDs      []int    // one per rank: the value of its PMI_FD
	Finished chan int // receives each rank that sends finalize

	mu       sync.Mutex
	kvs      map[string]string
	waiting  []*os.File // connections of the ranks that have entered the barrier
	received []string   // each request, after the rank that sent it
	serving  sync.WaitGroup
}

// Start serves the ranks of a job until the test ends.
func Start(t *testing.T, size int) *Server {
	s := &Server{kvs: map[string]string{}, Finished: make(chan int, size)}
	for rank := range size {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.FDs = append(s.FDs, pair[0])
		s.serving.Go(func() { s.serve(rank, size, os.NewFile(uintptr(pair[1]), "PMI")) })
	}
	t.Cleanup(func() {
		for _, fd := range s.FDs {
			syscall.Shutdown(fd, syscall.SHUT_RDWR)
		}
		s.serving.Wait()
		for _, fd := range s.FDs {
			syscall.Close(fd)
		}
	})
	return s
}

// Received returns all requests so far, one per line, each preceded by the rank that sent it.
func (s *Server) Received() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.received, "\n")
}

func (s *Server) serve(rank, size int, conn *os.File) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if finished := s.answer(rank, size, conn, lines.Text()); finished {
			return
		}
	}
}

func (s *Server) answer(rank, size int, conn *os.File, request string) (finished bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, fmt.Sprint(rank, " ", request))
	fields := parse(request)
	switch fields["cmd"] {
	case "init":
		conn.WriteString("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n")
	case "get_my_kvsname":
		conn.WriteString("cmd=my_kvsname kvsname=kvs_1_0\n")
	case "put":
		s.kvs[fields["key"]] = fields["value"]
		conn.WriteString("cmd=put_result rc=0 msg=success\n")
	case "get":
		conn.WriteString("cmd=get_result rc=0 msg=success value=" + s.kvs[fields["key"]] + "\n")
	case "barrier_in":
		if s.waiting = append(s.waiting, conn); len(s.waiting) == size {
			for _, c := range s.waiting {
				c.WriteString("cmd=barrier_out\n")
			}
			s.waiting = nil
		}
	case "finalize":
		conn.WriteString("cmd=finalize_ack\n")
		s.Finished <- rank
		return true
	}
	return false
}

// parse splits a request of the form "cmd=put key=k value=v".
func parse(request string) map[string]string {
	fields := map[string]string{}
	for field := range strings.FieldsSeq(request) {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	return fields
}
