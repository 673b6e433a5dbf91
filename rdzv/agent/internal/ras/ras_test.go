package ras

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the answers of NCCL's versions say of a job, by the format of each.
func TestLag(t *testing.T) {
	for _, c := range []struct {
		file   string
		nccl   string
		world  int
		text   string
		behind []int
	}{
		{"2.24-behind.txt", "2.24.3+cuda12.6", 32,
			"rank 5 is at collective 6649, the other 31 at 6650", []int{5}},
		{"2.24-equal.txt", "2.24.3+cuda12.6", 32, "all ranks are in the same collective", nil},
		{"2.24-none.txt", "2.25.1+cuda12.8", 2, "", nil},
		{"2.24-stopped.txt", "2.25.1+cuda12.8", 32, "NCCL has no answer from rank 21", []int{21}},
		{"2.26-behind.txt", "2.26.2+cuda12.8", 5,
			"3 ranks are at broadcast 0, rank 1 at 1; " +
				"rank 2 is at all_reduce 0, rank 3 at 11, ranks 0,1 at 12; " +
				"NCCL has no answer from rank 4", []int{2, 4}},
		{"2.28.3-behind.txt", "2.28.3+cuda13.0", 5,
			"3 ranks are at broadcast 0, rank 1 at 1; " +
				"rank 2 is at all_reduce 0, rank 3 at 11, ranks 0,1 at 12; " +
				"NCCL has no answer from rank 4", []int{2, 4}},
		{"2.28.7-stopped.txt", "2.28.7", 8, "NCCL has no answer from rank 6", []int{6}},
		{"2.29-behind.txt", "2.29.2", 8, "rank 5 is at all_reduce 6649, the other 7 at 6650", []int{5}},
		{"2.29-behind.txt", "2.29.2", 9, // a job without a communicator of all ranks
			"pid 105 on 10.0.0.2 is at all_reduce 6649, the other 7 at 6650 (of a communicator of 8)", nil},
		{"2.30-equal.txt", "2.30.7", 8, "all ranks are in the same collective", nil},
		{"2.30-groups.txt", "2.30.7", 8,
			"rank 6 is at all_reduce 39, ranks 4,5,7 at 40 (of a communicator of 4)", []int{6}},
		{"2.30-left.txt", "2.30.7", 8, "all ranks are in the same collective", nil},
		{"2.30-none.txt", "2.30.7", 8, "", nil},
	} {
		r, err := parse(recorded(t, c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		lag := r.Lag(c.world)
		if lag.Text != c.text || !slices.Equal(lag.Behind, c.behind) || r.NCCL != c.nccl {
			t.Errorf("%s: NCCL %q; %q, behind %v\nwant NCCL %q; %q, behind %v",
				c.file, r.NCCL, lag.Text, lag.Behind, c.nccl, c.text, c.behind)
		}
	}
}

func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		file string
		want []int64
	}{
		{"2.24-behind.txt", nil},
		{"2.29-behind.txt", []int64{6651, 6651, 6651, 6651, 6651, 6650, 6651, 6651}},
		{"2.30-groups.txt", []int64{6691, 6691, 6691, 6691, 6691, 6691, 6690, 6691}},
		{"2.28.7-stopped.txt", []int64{6651, 6651, 6651, 6651, 6651, 6651, -1, 6651}},
		{"2.30-none.txt", nil},
	} {
		r, err := parse(recorded(t, c.file))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Launched(8); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.file, got, c.want)
		}
	}
}

// Counts that differ are progress; a rank that does not answer any more is not.
func TestProgressed(t *testing.T) {
	edit := func(file string, replace ...string) Report {
		t.Helper()
		text := recorded(t, file)
		changed := strings.NewReplacer(replace...).Replace(text)
		if len(replace) > 0 && changed == text {
			t.Fatalf("%s does not have %q", file, replace)
		}
		r, err := parse(changed)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		what          string
		before, after Report
		want          bool
	}{
		{"json, the same", edit("2.29-behind.txt"), edit("2.29-behind.txt"), false},
		{"json, another time", edit("2.29-behind.txt"),
			edit("2.29-behind.txt", "0.003", "1.5", "13:06", "13:07"), false},
		{"json, more", edit("2.29-behind.txt"), edit("2.29-behind.txt", "6649", "6650"), true},
		{"json, a rank is missing", edit("2.30-equal.txt"), edit("2.28.7-stopped.txt"), false},
		{"json, a new communicator", edit("2.30-none.txt"), edit("2.30-equal.txt"), true},
		{"text, the same", edit("2.24-behind.txt"), edit("2.24-behind.txt", "0.02s", "0.10s"), false},
		{"text, more", edit("2.24-behind.txt"), edit("2.24-behind.txt", "6649", "6648"), true},
		{"text, caught up", edit("2.24-behind.txt"), edit("2.24-equal.txt"), true},
		{"text, one falls behind", edit("2.24-equal.txt"), edit("2.24-behind.txt"), true},
		{"text, a rank is missing", edit("2.24-equal.txt"), edit("2.24-stopped.txt"), false},
		{"text, equal", edit("2.24-equal.txt"), edit("2.24-equal.txt"), false},
		{"text, one by one", edit("2.26-behind.txt"), edit("2.26-behind.txt", "operation 11", "operation 12"),
			true},
	} {
		if got := Progressed(c.before, c.after); got != c.want {
			t.Errorf("%s: %t, want %t", c.what, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		f.Add(recorded(f, filepath.Base(file)), 8)
	}
	f.Fuzz(func(t *testing.T, text string, world int) {
		r, err := parse(text)
		if err != nil {
			return
		}
		world = min(max(world, 1), 1000)
		for _, rank := range r.Lag(world).Behind {
			if rank < 0 || rank >= world {
				t.Errorf("rank %d of %d is behind", rank, world)
			}
		}
		if list := r.Launched(world); list != nil && len(list) != world {
			t.Errorf("%d counts of %d ranks", len(list), world)
		}
		Progressed(r, Report{})
		if r.Complete && Progressed(r, r) {
			t.Error("a report has progressed since itself")
		}
	})
}

// serve lets f answer each connection at an address, until the test ends.
func serve(t *testing.T, f func(conn net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func askWithin(t *testing.T, addr string, limit time.Duration) (Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return ask(ctx, addr, time.Second, 4<<20)
}

// The client speaks the protocol, to a service that knows JSON and to one that does not.
func TestAsk(t *testing.T) {
	for _, json := range []bool{true, false} {
		addr := serve(t, func(conn net.Conn) { imitate(conn, json, t) })
		r, err := askWithin(t, addr, 10*time.Second)
		if lag := r.Lag(32).Text; err != nil || json != r.Complete || lag == "" {
			t.Errorf("json %t: %+v, %q, %v", json, r, lag, err)
		}
	}
}

// imitate is RAS: each line of the client is a command, and the connection ends after the status.
func imitate(conn net.Conn, json bool, t *testing.T) {
	formatJSON := false
	text := ""
	for buffer := make([]byte, 64); ; {
		line, rest, found := strings.Cut(text, "\n")
		if !found {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			text += string(buffer[:n])
			continue
		}
		text = rest
		answer := "OK\n"
		switch command := strings.ToLower(line); {
		case strings.HasPrefix(command, "client protocol "):
			answer = "SERVER PROTOCOL 2\n"
		case strings.HasPrefix(command, "timeout "):
		case command == "set format json" && json:
			formatJSON = true
		case command == "verbose status", command == "status":
			file := "2.24-behind.txt"
			if formatJSON {
				file = "2.29-behind.txt"
			}
			_, answer, _ = strings.Cut(recorded(t, file), "json\n")
			if formatJSON {
				_, answer, _ = strings.Cut(recorded(t, file), "OK\nOK\n")
			}
			conn.Write([]byte(answer))
			return
		default:
			answer = "ERROR: Unknown command " + line + "\n"
		}
		conn.Write([]byte(answer))
	}
}

// A service that is dead, broken or hostile is no answer, in limited time and memory.
func TestAskBadService(t *testing.T) {
	flood := []byte(strings.Repeat("x", 1<<20))
	for name, f := range map[string]func(net.Conn){
		"closes":  func(net.Conn) {},
		"garbage": func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"half":    func(conn net.Conn) { conn.Write([]byte("SERVER PROTOCOL 2\nOK\nOK\n{\"nccl_")) },
		"ranks": func(conn net.Conn) {
			conn.Write([]byte(`SERVER PROTOCOL 2` + "\n" +
				`{"communicators":[{"size":2,"ranks":[{"rank":7,"collective_counts":{"AllReduce":1}}]}]}`))
		},
		"silent": func(conn net.Conn) { conn.Read(make([]byte, 1000)); <-t.Context().Done() },
		"flood": func(conn net.Conn) {
			conn.Write([]byte("SERVER PROTOCOL 2\n"))
			for {
				if _, err := conn.Write(flood); err != nil {
					return
				}
			}
		},
		"drip": func(conn net.Conn) {
			for _, err := conn.Write([]byte("S")); err == nil; _, err = conn.Write([]byte("S")) {
				time.Sleep(time.Millisecond) // as slowly as it likes
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 300 * time.Millisecond
			if name == "flood" {
				limit = 30 * time.Second // 4 MiB on a busy machine
			}
			r, err := askWithin(t, serve(t, f), limit)
			if err == nil {
				t.Errorf("answer %+v, want an error", r)
			}
			if silent := name == "silent" || name == "drip"; silent != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := askWithin(t, "127.0.0.1:1", 10*time.Second); err == nil {
		t.Error("an answer where nobody listens")
	}
}
