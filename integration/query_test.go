package integration

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// output runs a command to its end and returns its lines, sorted, for the lines of ranks come in any order.
func output(t *testing.T, p *place, argv ...string) []string {
	t.Helper()
	c := p.start(argv...)
	if code := c.code(); code != 0 {
		t.Errorf("%q ended with %d", argv, code)
	}
	lines, _ := c.said()
	slices.Sort(lines)
	return lines
}

// get-rank and its like answer at once, from what the launcher has told, and from RANK inside a worker.
func TestGetRank(t *testing.T) {
	for _, c := range []struct {
		flag string
		want []string
	}{
		{"", []string{"0", "1", "2", "3"}},
		{"--local", []string{"0", "1", "2", "3"}},
		{"--size", []string{"4", "4", "4", "4"}},
		{"--local-size", []string{"4", "4", "4", "4"}},
	} {
		query := []string{*rdzvBin, "get-rank"}
		if c.flag != "" {
			query = append(query, c.flag)
		}
		t.Run("mpirun"+c.flag, func(t *testing.T) {
			p := newPlace(t)
			if got := output(t, p, append(mpirunCommand(4), query...)...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
		t.Run("inside"+c.flag, func(t *testing.T) {
			p := newPlace(t)
			if got := output(t, p, direct(p, 4, nil, query)...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Where there is no rank, get-rank says so in one line and fails, or gives the default it was told.
func TestNoRank(t *testing.T) {
	p := newPlace(t)
	job := p.start(*rdzvBin, "get-rank")
	if code := job.code(); code != 1 {
		t.Errorf("get-rank ended with %d, want 1", code)
	}
	checkOneLine(t, job, "rank")
	if got := output(t, p, *rdzvBin, "get-rank", "--default", "5"); !slices.Equal(got, []string{"5"}) {
		t.Errorf("got %q, want 5", got)
	}
}

// env prints what exec would set, as far as it is known here.
func TestEnv(t *testing.T) {
	p := newPlace(t)
	lines := output(t, p, append(mpirunCommand(2), *rdzvBin, "env")...)
	for _, want := range []string{`^export RANK='?0'?$`, `^export RANK='?1'?$`, `^export WORLD_SIZE='?2'?$`} {
		pattern := regexp.MustCompile(want)
		if !slices.ContainsFunc(lines, pattern.MatchString) {
			t.Errorf("no line is like %s", want)
		}
	}
	job := p.start(append(mpirunCommand(1), *rdzvBin, "env", "--format", "json")...)
	job.code()
	text, _ := job.said()
	var env map[string]any
	if err := json.Unmarshal([]byte(strings.Join(text, "\n")), &env); err != nil || env["RANK"] != "0" {
		t.Errorf("the JSON has RANK %v, error %v", env["RANK"], err)
	}
}

// token prints a secret of at least 16 bytes, another every time.
func TestToken(t *testing.T) {
	p := newPlace(t)
	one, two := output(t, p, *rdzvBin, "token"), output(t, p, *rdzvBin, "token")
	if len(one) != 1 || len(one[0]) < 22 || slices.Equal(one, two) {
		t.Errorf("the tokens are %q and %q", one, two)
	}
}

func TestVersion(t *testing.T) {
	if got := output(t, newPlace(t), *rdzvBin, "version"); len(got) == 0 || !strings.HasPrefix(got[0], "rdzv ") {
		t.Errorf("version says %q", got)
	}
}
