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

// What the answers of NCCL's versions say of a job.
func TestLag(t *testing.T) {
	for _, c := range []struct {
		file   string
		world  int
		text   string
		behind []int
	}{
		{"2.28.7-stopped.txt", 8, "NCCL has no answer from rank 6", []int{6}},
		{"2.29-behind.txt", 8, "rank 5 is at all_reduce 6649, the other 7 at 6650", []int{5}},
		{"2.29-behind.txt", 9, // a job without a communicator of all ranks
			"pid 105 on 10.0.0.2 is at all_reduce 6649, the other 7 at 6650 (of a communicator of 8)", nil},
		{"2.30-equal.txt", 8, "all ranks are in the same collective", nil},
		{"2.30-groups.txt", 8,
			"rank 6 is at all_reduce 39, the other 3 at 40 (of a communicator of 4)", []int{6}},
		{"2.30-left.txt", 8, "all ranks are in the same collective", nil},
		{"2.30-none.txt", 8, "", nil},
	} {
		r, err := parse(recorded(t, c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		lag := r.Lag(c.world)
		if lag.Text != c.text || !slices.Equal(lag.Behind, c.behind) || r.Text != "" {
			t.Errorf("%s: %q, behind %v\nwant %q, behind %v", c.file, lag.Text, lag.Behind, c.text, c.behind)
		}
	}
}

// Ranks with more than two counts, or of which most are behind, and more differences than are named.
func TestLagOfManyCounts(t *testing.T) {
	comm := func(op string, counts ...uint64) (c Comm) {
		c.Size = len(counts)
		for rank, n := range counts {
			c.Ranks = append(c.Ranks, Member{Rank: rank, Counts: map[string]uint64{op: n}})
		}
		return c
	}
	for _, c := range []struct {
		comms  []Comm
		text   string
		behind []int
	}{
		{[]Comm{comm("AllReduce", 12, 12, 0, 11)}, "rank 2 is at all_reduce 0, the other 3 at up to 12", []int{2}},
		{[]Comm{comm("", 1, 1, 1, 2)}, "ranks 0,1,2 are at collective 1, the other 1 at 2", nil},
		{[]Comm{comm("Broadcast", 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2)},
			"ranks 0,1,2,3 and 2 more are at broadcast 1, the other 6 at 2", []int{0, 1, 2, 3, 4, 5}},
		{slices.Repeat([]Comm{comm("Reduce", 1, 2)}, 6), strings.Repeat(
			"rank 0 is at reduce 1, the other 1 at 2; ", 4) + "and 2 more differences", []int{0}},
	} {
		lag := Report{Comms: c.comms}.Lag(c.comms[0].Size)
		if lag.Text != c.text || !slices.Equal(lag.Behind, c.behind) {
			t.Errorf("%q, behind %v\nwant %q, behind %v", lag.Text, lag.Behind, c.text, c.behind)
		}
	}
}

// The report of an older NCCL is a text for people, of limited length, and says nothing by itself.
func TestOlderReports(t *testing.T) {
	for _, file := range []string{
		"2.24-behind.txt", "2.24-equal.txt", "2.24-none.txt", "2.24-stopped.txt", "2.26-behind.txt",
		"2.28.3-behind.txt",
	} {
		text := recorded(t, file)
		r, err := parse(text)
		_, want, _ := strings.Cut(text, "NCCL version ")
		if want = "NCCL version " + strings.TrimSpace(want); err != nil || r.Text != want {
			t.Errorf("%s: %v, text\n%s", file, err, r.Text)
		}
		if lag := r.Lag(8); lag.Text != "" || lag.Behind != nil || r.Launched(8) != nil || Progressed(r, r) {
			t.Errorf("%s says %+v", file, lag)
		}
	}
	long := "SERVER PROTOCOL 2\nNCCL version 2.24.3 compiled\n" + strings.Repeat("Rank 5\xff\n", maxText)
	r, err := parse(long)
	if err != nil || len(r.Text) > maxText+100 || !strings.HasSuffix(r.Text, "\nRank 5?\n...") {
		t.Errorf("%d bytes, %v, ending in %q", len(r.Text), err, r.Text[max(0, len(r.Text)-20):])
	}
}

func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		file string
		want []int64
	}{
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
		if Progressed(r, r) {
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
		if lag := r.Lag(32).Text; err != nil || json != (lag != "") || json == (r.Text != "") {
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
