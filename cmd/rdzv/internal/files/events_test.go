package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

var (
	placed = agent.Placed{Host: "node1"}
	hosts  = agent.StoreFound{Leads: true}
	finds  = agent.StoreFound{}
	agreed = agent.WorldAgreed{World: rdzv.World{Size: 2}}
	ended  = agent.JobEnded{Verdict: &rdzv.Verdict{Kind: rdzv.Done}}
	final  = agent.Finished{}
)

// warnings collects what Events says.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) warn(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, err.Error())
}

// check checks that there was one warning with an end, or none if it is "".
func (w *warnings) check(t *testing.T, end string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if end == "" && len(w.list) > 0 || end != "" &&
		(len(w.list) != 1 || !strings.HasSuffix(w.list[0], end)) {
		t.Errorf("warnings %q, want one that ends with %q", w.list, end)
	}
}

// types are the types of the events in a file.
func types(t *testing.T, path string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		list = append(list, e.Type)
	}
	return list
}

// The agent that hosts the store writes all its events, also those from before it knew that. The
// others create no file.
func TestOnlyHostWrites(t *testing.T) {
	for _, row := range []struct {
		name   string
		events []agent.Event
		want   string // none creates no file
	}{
		{"host", []agent.Event{placed, hosts, agreed, ended, final},
			"placed store_found world_agreed job_ended finished"},
		{"another agent", []agent.Event{placed, finds, agreed, ended, final}, ""},
		{"never joined", []agent.Event{placed, final}, ""},
		{"moved to another host", []agent.Event{placed, hosts, finds, agreed, final}, ""},
		{"moved to this host", []agent.Event{placed, finds, hosts, agreed, final},
			"placed store_found store_found world_agreed finished"},
		{"waits", []agent.Event{placed, hosts, agent.Waiting{}}, "placed store_found waiting"},
		{"no world", []agent.Event{placed, hosts, ended, final},
			"placed store_found job_ended finished"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var w warnings
			path := filepath.Join(t.TempDir(), "events")
			f := NewEvents(path, &Limit{}, w.warn)
			for _, e := range row.events {
				f.Event(e)
			}
			f.Close()
			w.check(t, "")
			if _, err := os.Stat(path); row.want == "" {
				if err == nil {
					t.Errorf("the file has %q", types(t, path))
				}
			} else if got := types(t, path); !slices.Equal(got, strings.Fields(row.want)) {
				t.Errorf("the file has %q, want %s", got, row.want)
			}
		})
	}
	var none *Events
	none.Event(placed)
	none.Close()
	if f := NewEvents("", nil, nil); f != nil {
		t.Error("there is a file without a path")
	}
}

// Events are appended to what the file has.
func TestEventsAreAppended(t *testing.T) {
	var w warnings
	path := filepath.Join(t.TempDir(), "events")
	for range 2 {
		f := NewEvents(path, &Limit{}, w.warn)
		f.Event(hosts)
		f.Event(agreed)
		f.Close()
	}
	w.check(t, "")
	want := []string{"store_found", "world_agreed", "store_found", "world_agreed"}
	if got := types(t, path); !slices.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
}

// A file that cannot be written is reported once.
func TestEventsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "events"): `/none/events": no such file or directory`,
		dir:                                  `: is a directory`,
		"/dev/full":                          ` events to "/dev/full": no space left on device`,
		fifo:                                 `/fifo": no process has it open for reading`,
	} {
		var w warnings
		f := NewEvents(path, &Limit{}, w.warn)
		for _, e := range []agent.Event{hosts, agreed, ended, final} {
			f.Event(e)
		}
		f.Close()
		w.check(t, want)
	}
}

// A reader that does not read delays nothing.
func TestReaderThatDoesNotRead(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var w warnings
	f := NewEvents(fifo, &Limit{}, w.warn)
	began := time.Now()
	f.Event(hosts)
	for range 4 * maxQueue {
		f.Event(agent.EnvironmentNote{Text: strings.Repeat("x", 100)})
	}
	f.Close()
	if took := time.Since(began); took > 5*Timeout {
		t.Errorf("the file has delayed its agent by %v", took)
	}
	w.check(t, `/fifo": the file system or the reader does not respond`)
	if f.dropped == 0 {
		t.Error("no event was dropped")
	}
}
