package hosts

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string][]Host{
		"node1":                          {{Name: "node1"}},
		"node1:8,node2:4":                {{Name: "node1", Workers: 8}, {Name: "node2", Workers: 4}},
		"node1:22":                       {{Name: "node1", Workers: 22}},
		"joe@node1:8, sue@10.0.0.2":      {{"joe", "node1", 8}, {"sue", "10.0.0.2", 0}},
		"joe@corp@gpu_1.example.com":     {{User: "joe@corp", Name: "gpu_1.example.com"}},
		"[fd77::1]:8,joe@[fe80::1%eth0]": {{"", "fd77::1", 8}, {"joe", "fe80::1%eth0", 0}},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]struct{ cause, hint string }{
		"":                          {`cannot use hosts "": one of them is empty`, ListForm},
		"node1,":                    {`cannot use hosts "node1,": one of them is empty`, ListForm},
		"-oProxyCommand=reboot":     {`"-oProxyCommand=reboot" is not a host name`, ListForm},
		"-oProxyCommand=x@node1":    {`"-oProxyCommand=x" is not a user name`, ListForm},
		"joe@-x":                    {`"-x" is not a host name`, ListForm},
		"@node1":                    {`"" is not a user name`, ListForm},
		"node1 node2":               {`"node1 node2" is not a host name`, ListForm},
		"$(reboot)":                 {"is not a host name", ListForm},
		"node1=8":                   {`"node1=8" is not a host name`, ListForm},
		"node[1-4]":                 {`"node[1-4]" is not a host name`, "ranges are not expanded"},
		"./hosts":                   {`"./hosts" is not a host name`, "--hostfile"},
		"node1:":                    {"the number of workers is missing", ListForm},
		"node1:0":                   {"a host has at least one worker", ListForm},
		"node1:-1":                  {"a host has at least one worker", ListForm},
		"node1:*":                   {`cannot use host "node1:*": "*" is not a number of workers`, ListForm},
		"node1:2222":                {"2222 workers on one host are too many", `"Host node1"`},
		"node1:2222:8":              {"more than one colon", `"Host node1"`},
		"ssh://joe@node1:2222/":     {`"ssh://joe" is not a user name`, ListForm},
		"fd77::1":                   {"an IPv6 address needs brackets", "[fd77::1], or with 8"},
		"[fd77::1":                  {"it is not an IPv6 address", "[fd77::1]:8"},
		"[node1]:8":                 {"it is not an IPv6 address", ""},
		"[fd77::1]8":                {"it is not an IPv6 address", ""},
		"node1:2,node2,joe@NODE1:2": {`cannot use host "NODE1": it is in the list already`, "NODE1:2"},
		"[::1],[::1]":               {"it is in the list already", "[::1]:2"},
	} {
		got, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", text, got)
			continue
		}
		var h interface{ Hint() string }
		hint := ""
		if errors.As(err, &h) {
			hint = h.Hint()
		}
		if !strings.Contains(err.Error(), want.cause) || !strings.Contains(hint, want.hint) {
			t.Errorf("Parse(%q): %q, hint %q; want %q", text, err, hint, want)
		}
	}
}

func TestReadFile(t *testing.T) {
	const file = "\ufeff# Open MPI's form\r\n" +
		"\r\n" +
		"user1@node1 slots=4 max-slots=4\r\n" +
		"node2\tslots = 2 max_slots=8 # two GPUs\n" +
		"node3 cpu=3\n" +
		"node4 username=joe\n" +
		"   # MPICH's form\n" +
		"node5:4\n" +
		"node6:1 user=sue\n" +
		"[fd77::1] slots=2\n" +
		"node7"
	got, err := ReadFile(strings.NewReader(file), "hosts")
	want := []Host{
		{"user1", "node1", 4}, {"", "node2", 2}, {"", "node3", 3}, {"joe", "node4", 0},
		{"", "node5", 4}, {"sue", "node6", 1}, {"", "fd77::1", 2}, {"", "node7", 0},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadFile = %+v, %v; want %+v", got, err, want)
	}
}

func TestReadFileRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"":            `cannot use host file "hosts": it names no host`,
		"# node1\n\n": `cannot use host file "hosts": it names no host`,
		"node1\n-x\n": `hosts:2: cannot use host "-x": "-x" is not a host name`,
		"node1\nnode2 slot=2": `hosts:2: cannot use "slot=2" for host "node2": ` +
			"only slots, max-slots and user can be set for a host",
		"node1 slots=x":              `hosts:1: cannot use "slots=x" for host "node1": "x" is not a number of workers`,
		"node1:x":                    `hosts:1: cannot use host "node1:x": "x" is not a number of workers`,
		"node1 slots":                `hosts:1: cannot use "slots" for host "node1": the number of workers is missing`,
		"node1 2":                    `hosts:1: cannot use "2" for host "node1": only slots, `,
		"node1,node2":                `hosts:1: cannot use host "node1,node2": "node1,node2" is not a host name`,
		"node1:2 slots=2":            "the line has two numbers of workers",
		"node1 slots=4 max-slots=2":  "slots is more than max-slots",
		"node1 port=2222":            "a host file has no ports",
		"joe@node1 user=sue":         "the line has two users",
		"node1 user=-x":              `"-x" is not a user name`,
		"node1 node2":                "only slots, max-slots and user can be set",
		"^node1":                     `"^node1" is not a host name`,
		"+n0":                        `"+n0" is not a host name`,
		"rank 0=node1 slot=1":        `cannot use "0=node1" for host "rank"`,
		"node1\n\nnode2\nnode1:3":    "hosts:4: cannot use host \"node1\": it is in the list already",
		"-x\n-y":                     "hosts:2: ",
		strings.Repeat("x", 100_000): `cannot read host file "hosts": `,
	} {
		got, err := ReadFile(strings.NewReader(file), "hosts")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadFile(%.40q) = %+v, %v; want %q", file, got, err, want)
		}
		var h interface{ Hint() string }
		if !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("ReadFile(%.40q) = %v, without a hint", file, err)
		}
	}
	if _, err := ReadFile(iotest.ErrReader(errors.New("gone")), "hosts"); err == nil ||
		err.Error() != `cannot read host file "hosts": gone` {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// What is accepted can be given to ssh: neither a flag, nor empty, nor with a space; and each host
// is there once.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{
		"node1:8,joe@node2", "[fd77::1]:8", "ssh://joe@node1:22", "node1 slots=4 max-slots = 4\r\n# x",
		"-x", "a@-b", "rank 0=node1 slot=1", "@:", "[", "node1\nnode1", "a=b", "=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, listErr := Parse(text)
		file, fileErr := ReadFile(strings.NewReader(text), "hosts")
		for _, read := range []struct {
			hosts []Host
			err   error
		}{{list, listErr}, {file, fileErr}} {
			seen := map[string]bool{}
			for _, h := range read.hosts {
				target := h.String()
				if h.Name == "" || target[0] == '-' || strings.ContainsAny(target, " \t\r\n'\"`$") ||
					h.Workers < 0 || seen[strings.ToLower(h.Name)] {
					t.Errorf("%q has host %+v", text, h)
				}
				seen[strings.ToLower(h.Name)] = true
			}
			if read.err == nil && len(read.hosts) == 0 {
				t.Errorf("%q: neither hosts nor an error", text)
			}
		}
	})
}
