package output

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		text  string
		count int // of 16
		has   []int
		not   []int
	}{
		{"", 16, []int{0, 15, 99}, nil},
		{"none", 0, nil, []int{0, 15}},
		{"3", 1, []int{3}, []int{2, 4}},
		{"0,4-7", 5, []int{0, 4, 7}, []int{1, 3, 8}},
		{"4-7,5-8", 5, []int{4, 8}, []int{3, 9}},
		{"16-99", 0, []int{16}, []int{15}},
		{"local:0,3", 8, []int{0, 3, 4, 15}, []int{1, 6}}, // of 4 on each node
		{"local:4", 0, nil, []int{4, 8}},
	} {
		r, err := ParseRanks(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Count(16, 4); n != c.count {
			t.Errorf("%q: %d ranks of 16, want %d", c.text, n, c.count)
		}
		for _, rank := range c.has {
			if !r.Has(rank, rank%4) {
				t.Errorf("%q: does not have rank %d", c.text, rank)
			}
		}
		for _, rank := range c.not {
			if r.Has(rank, rank%4) {
				t.Errorf("%q: has rank %d", c.text, rank)
			}
		}
	}
	for _, text := range []string{
		"all", "1-", "-1", "2-1", "1,,2", "1,none", " 1", "99999999999", "local:", "local:none",
	} {
		if _, err := ParseRanks(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestLogs(t *testing.T) {
	dir := t.TempDir()
	logs := Logs{Dir: dir, Job: "../a b", Began: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	const run = ".._a_b-20260102T030405.678"
	if got, want := logs.File(3), filepath.Join(dir, run, "attempt-0/rank-00003.log"); got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	for range 2 { // the second time appends
		files, err := logs.Open([]int{3, 4})
		if err != nil || len(files) != 2 {
			t.Fatalf("Open: %d files, %v", len(files), err)
		}
		files[1].WriteString("text\n")
		Close(files)
	}
	if text, _ := os.ReadFile(logs.File(4)); string(text) != "text\ntext\n" {
		t.Errorf("the file has %q", text)
	}
	for _, began := range []time.Time{logs.Began, logs.Began.Add(time.Hour)} {
		logs.Began = began
		if err := logs.Link(); err != nil {
			t.Fatal(err)
		}
		if to, _ := os.Readlink(filepath.Join(dir, "latest")); to != logs.run() {
			t.Errorf("latest is a link to %q, want %q", to, logs.run())
		}
	}
	logs.Dir = filepath.Join(dir, run)
	mine := filepath.Join(logs.Dir, "latest")
	if err := os.WriteFile(mine, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := logs.Link(); err == nil {
		t.Error("Link replaces a file that is no link")
	}
	if text, _ := os.ReadFile(mine); string(text) != "mine" {
		t.Errorf("the file that is no link has %q", text)
	}
}
